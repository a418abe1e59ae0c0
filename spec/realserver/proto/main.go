// proto writes core/wire/proto_data.c (`proto tables`): how each message of the built-in kinds becomes JSON,
// out of the struct tags of k8s.io/api. The .proto files would not do: they know neither what is inlined nor
// what is left out when empty.
// And it writes spec/fixtures/proto/objects.txt (`proto objects`): filled objects as Go's own serializers
// write them, both ways.
// `proto omitted` lists the fields that core/schema/builtin.lua marks so.
// `make generate` runs it.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "tables" {
		tables(os.Stdout)
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "objects" {
		objects(os.Stdout)
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "omitted" {
		omitted(os.Stdout)
		return
	}
	fmt.Fprintln(os.Stderr, "usage: proto tables|objects|omitted")
	os.Exit(2)
}
