/* regex.cc - RE2 behind C functions. The only C++ of the project: RE2 has no C interface. */
#include "base/regex.h"

#include <new>
#include <re2/re2.h>

struct kl_regex {
    re2::RE2 re;
    kl_regex(const re2::StringPiece &pattern, const re2::RE2::Options &o) : re(pattern, o) {}
};

/* Go's messages for RE2's errors (regexp/syntax/parse.go). */
static const char *words(re2::RE2::ErrorCode code)
{
    switch (code) {
    case re2::RE2::ErrorBadEscape: return "invalid escape sequence";
    case re2::RE2::ErrorBadCharClass: return "invalid character class";
    case re2::RE2::ErrorBadCharRange: return "invalid character class range";
    case re2::RE2::ErrorMissingBracket: return "missing closing ]";
    case re2::RE2::ErrorMissingParen: return "missing closing )";
    case re2::RE2::ErrorUnexpectedParen: return "unexpected )";
    case re2::RE2::ErrorTrailingBackslash: return "trailing backslash at end of expression";
    case re2::RE2::ErrorRepeatArgument: return "missing argument to repetition operator";
    case re2::RE2::ErrorRepeatSize: return "invalid repeat count";
    case re2::RE2::ErrorRepeatOp: return "invalid nested repetition operator";
    case re2::RE2::ErrorBadPerlOp: return "invalid or unsupported Perl syntax";
    case re2::RE2::ErrorBadUTF8: return "invalid UTF-8";
    case re2::RE2::ErrorBadNamedCapture: return "invalid named capture";
    case re2::RE2::ErrorPatternTooLarge: return "expression too large";
    default: return "internal error";
    }
}

kl_status kl_regex_new(const char *pattern, size_t n, kl_regex **out, kl_err *err)
{
    re2::RE2::Options o;
    o.set_log_errors(false);
    kl_regex *r = new (std::nothrow) kl_regex(re2::StringPiece(pattern, n), o);
    if (!r)
        return kl_fail(err, KL_EINTERNAL, "not enough memory for a regular expression");
    if (!r->re.ok()) {
        const char *what = words(r->re.error_code());
        const std::string &at = r->re.error_arg();
        kl_status st = kl_fail(err, KL_EINVAL, "error parsing regexp: %s: `%s`", what, at.c_str());
        delete r;
        return st;
    }
    *out = r;
    return KL_OK;
}

void kl_regex_free(kl_regex *r) { delete r; }

bool kl_regex_find(const kl_regex *r, const char *text, size_t n, size_t from, size_t *begin, size_t *end)
{
    re2::StringPiece found;
    if (from > n || !r->re.Match(re2::StringPiece(text, n), from, n, re2::RE2::UNANCHORED, &found, 1))
        return false;
    *begin = (size_t)(found.data() - text);
    *end = *begin + found.size();
    return true;
}

bool kl_regex_matches(const kl_regex *r, const char *text, size_t n)
{
    return r->re.Match(re2::StringPiece(text, n), 0, n, re2::RE2::UNANCHORED, nullptr, 0);
}
