// json.cpp - the limit of decoding: simdjson, json simdjson|ondemand|items FILE.
//
//   simdjson   the whole list into one DOM
//   ondemand   the whole list, of each object four fields are looked at
//   items      object by object with one small parser, nothing kept
//
// Prints one line of JSON (README.md).
// The best of five passes; the first is told too. Finding where the items are is not counted.
#include <cstdio>
#include <cstdlib>
#include <simdjson.h>
#include <string>

extern "C" {
#include "figures.h"
#include "podlist.h"
}

namespace {

using simdjson::padded_string;

[[noreturn]] void die(const char *why)
{
    std::fprintf(stderr, "json-limit: %s\n", why);
    std::exit(1);
}

size_t whole(simdjson::dom::parser &parser, const padded_string &text)
{
    auto doc = parser.parse(text);
    if (doc.error())
        die(simdjson::error_message(doc.error()));
    size_t check = 0;
    for (auto o : doc["items"].get_array())
        check += std::string_view(o["spec"]["nodeName"]).size();
    return check;
}

size_t ondemand(simdjson::ondemand::parser &parser, const padded_string &text)
{
    auto doc = parser.iterate(text);
    size_t check = 0, other = 0;
    for (auto o : doc["items"]) {
        simdjson::ondemand::object object = o.get_object();
        auto metadata = object["metadata"].get_object();
        other += std::string_view(metadata["name"]).size() + std::string_view(metadata["namespace"]).size();
        for (auto label : metadata["labels"].get_object())
            other += std::string_view(label.value()).size();
        check += std::string_view(object["spec"]["nodeName"]).size();
    }
    return other ? check : 0;
}

size_t items(simdjson::dom::parser &parser, const padded_string &text, const podlist &l)
{
    auto bytes = reinterpret_cast<const uint8_t *>(text.data());
    size_t check = 0;
    for (size_t i = 0; i < l.len; i++) {
        auto o = parser.parse(bytes + l.item[i].at, l.item[i].n, false);
        if (o.error())
            die(simdjson::error_message(o.error()));
        check += std::string_view(o["spec"]["nodeName"]).size();
    }
    return check;
}

}

int main(int argc, char **argv)
{
    if (argc != 3)
        die("usage: simdjson|ondemand|items FILE");
    std::string how = argv[1];
    podlist l = podlist_open(argv[2], 0);
    padded_string text(l.text, l.bytes);
    simdjson::dom::parser dom;
    simdjson::ondemand::parser demand;
    double best = 1e9, first = 0;
    size_t check = 0;
    for (int i = 0; i < 5; i++) {
        double began = cpu_seconds();
        if (how == "simdjson")
            check = whole(dom, text);
        else if (how == "ondemand")
            check = ondemand(demand, text);
        else
            check = items(dom, text, l);
        double s = cpu_seconds() - began;
        best = s < best ? s : best;
        if (i == 0)
            first = s;
    }
    double mb = static_cast<double>(l.bytes) / 1e6;
    const char *peer = "object by object";
    if (how == "simdjson")
        peer = "whole";
    else if (how == "ondemand")
        peer = "on demand, 4 fields";
    std::printf("{\"peer\":\"simdjson %s\",\"mb\":%.1f,\"s\":%.4f,", peer, mb, best);
    std::printf("\"first_s\":%.4f,\"mb_s\":%.1f,\"check\":%zu}\n", first, mb / best, check);
    podlist_close(&l);
}
