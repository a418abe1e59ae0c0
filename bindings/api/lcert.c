/* lcert.c - keys, certificate requests and certificates in Lua, and the files that hold them
 * (lua/kubelua/certificate.lua). Bytes are Lua strings. */
#include <arpa/inet.h>
#include <string.h>
#include "state/border.h"
#include "base/base64.h"
#include "base/mem.h"
#include "base/pairfile.h"
#include "base/x509.h"
#include "base/x509_request.h"

static int raise_io(lua_State *L, kl_err *err) { return lkl_raise(L, err, NULL, NULL, NULL); }

/* The texts of the list in a field of the table at 1, as an array in a userdata that stays on the stack. The
 * table keeps the texts alive. */
static const char *const *texts(lua_State *L, const char *field)
{
    lua_getfield(L, 1, field);
    size_t n = lua_istable(L, -1) ? lua_rawlen(L, -1) : 0;
    const char **list = lua_newuserdatauv(L, (n + 1) * sizeof *list, 0);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "%s: each must be a string, got %s", field, luaL_typename(L, -1));
        list[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    list[n] = NULL;
    return list;
}

typedef struct pair {
    char *key, *request;
} pair;

static void pair_free(void *ptr)
{
    pair *p = ptr;
    kl_x509_wipe(p->key);
    kl_free(p->request);
    kl_free(p);
}

static const lkl_class pair_class = {.name = "kubelua.pair", .free = pair_free};

/* core.x509_request{ cn =, orgs =, dns =, ips = }: a new key and its certificate request, as PEM; or nil and
 * why it failed */
static int x509_request(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    kl_x509_wish w = {.orgs = texts(L, "orgs"), .dns = texts(L, "dns"), .ips = texts(L, "ips")};
    lua_getfield(L, 1, "cn");
    w.cn = lua_tostring(L, -1);
    lkl_box *box = lkl_box_new(L, &pair_class, 0);
    pair *p = box->ptr = kl_new(pair);
    kl_err err = KL_ERR_INIT;
    if (kl_x509_request(&w, &p->key, &p->request, &err)) {
        lua_pushnil(L);
        lkl__push_text(L, kl_strdup(kl_err_message(&err)));
        kl_err_fini(&err);
        return 2;
    }
    lua_pushstring(L, p->key);
    lua_pushstring(L, p->request);
    lkl_box_close(L, -3);
    return 2;
}

static void facts_free(void *ptr)
{
    kl_x509_facts_fini(ptr);
    kl_free(ptr);
}

static const lkl_class facts_class = {.name = "kubelua.facts", .free = facts_free};

static void set_list(lua_State *L, const char *field, char **list)
{
    lua_newtable(L);
    for (lua_Integer i = 0; list && list[i]; i++) {
        lua_pushstring(L, list[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, field);
}

/* core.x509_facts(pem): { cn =, orgs =, dns =, ips =, not_before =, not_after = } with seconds since 1970;
 * nil and why */
static int x509_facts(lua_State *L)
{
    const char *pem = lkl__text(L, 1);
    lkl_box *box = lkl_box_new(L, &facts_class, 0);
    kl_x509_facts *f = box->ptr = kl_new(kl_x509_facts);
    kl_err err = KL_ERR_INIT;
    if (kl_x509_facts_read(pem, f, &err)) {
        lua_pushnil(L);
        lkl__push_text(L, kl_strdup(kl_err_message(&err)));
        kl_err_fini(&err);
        return 2;
    }
    lua_createtable(L, 0, 6);
    lua_pushstring(L, f->cn);
    lua_setfield(L, -2, "cn");
    set_list(L, "orgs", f->orgs);
    set_list(L, "dns", f->dns);
    set_list(L, "ips", f->ips);
    lua_pushinteger(L, f->not_before / KL_SECONDS(1));
    lua_setfield(L, -2, "not_before");
    lua_pushinteger(L, f->not_after / KL_SECONDS(1));
    lua_setfield(L, -2, "not_after");
    return 1;
}

/* core.x509_pair(certificate, key): true, or nil and why they do not match */
static int x509_pair(lua_State *L)
{
    kl_err err = KL_ERR_INIT;
    if (!kl_x509_check_pair(lkl__text(L, 1), lkl__text(L, 2), &err)) {
        lua_pushboolean(L, true);
        return 1;
    }
    lua_pushnil(L);
    lkl__push_text(L, kl_strdup(kl_err_message(&err)));
    kl_err_fini(&err);
    return 2;
}

static void text_free(void *s) { kl_x509_wipe(s); }
static const lkl_class text_class = {.name = "kubelua.text", .free = text_free};

/* core.pair_read(dir, name): the text, or nil when there is none */
static int pair_read(lua_State *L)
{
    const char *dir = lkl__text(L, 1), *name = lkl__text(L, 2);
    lkl_box *box = lkl_box_new(L, &text_class, 0);
    char *text = NULL;
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_pairfile_read(dir, name, &text, &err);
    if (st == KL_ENOTFOUND) {
        kl_err_fini(&err);
        return 0;
    }
    if (st)
        return raise_io(L, &err);
    box->ptr = text;
    lua_pushstring(L, text);
    lkl_box_close(L, -2);
    return 1;
}

/* core.pair_write(dir, name, pem, now) */
static int pair_write(lua_State *L)
{
    kl_err err = KL_ERR_INIT;
    if (kl_pairfile_write(
            lkl__text(L, 1), lkl__text(L, 2), lkl__text(L, 3), lkl__seconds(luaL_checknumber(L, 4)), &err))
        return raise_io(L, &err);
    return 0;
}

static int pair_path(lua_State *L)
{
    lkl__push_text(L, kl_pairfile_path(lkl__text(L, 1), lkl__text(L, 2)));
    return 1;
}

/* core.ip(text): the address as certificates spell it, or nil when it is none */
static int ip(lua_State *L)
{
    const char *s = lkl__text(L, 1);
    unsigned char bytes[16];
    char text[INET6_ADDRSTRLEN];
    int family = inet_pton(AF_INET, s, bytes) == 1 ? AF_INET
        : inet_pton(AF_INET6, s, bytes) == 1       ? AF_INET6
                                                   : 0;
    if (!family || !inet_ntop(family, bytes, text, sizeof text))
        return 0;
    lua_pushstring(L, text);
    return 1;
}

/* kube.base64_encode(bytes): the text; the encoding of a secret is a secret */
static int base64_encode(lua_State *L)
{
    size_t n;
    const char *hidden = lkl__secret_text(L, 1, &n);
    if (hidden) {
        char *text = lkl__push_secret(L, NULL, (n + 2) / 3 * 4), *plain = kl_base64_encode(hidden, n);
        memcpy(text, plain, strlen(plain));
        kl_free(plain);
        return 1;
    }
    const char *data = luaL_checklstring(L, 1, &n);
    lkl__push_text(L, kl_base64_encode(data, n));
    return 1;
}

static void buf_free(void *ptr)
{
    kl_buf_fini(ptr);
    kl_free(ptr);
}

static const lkl_class buf_class = {.name = "kubelua.bytes", .free = buf_free};

/* kube.base64_decode(text): the bytes; raises for what is not base64 */
static int base64_decode(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    lkl_box *box = lkl_box_new(L, &buf_class, 0);
    kl_buf *b = box->ptr = kl_new(kl_buf);
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_base64_decode(text, n, b, &err);
    if (st)
        return lkl_raise(L, &err, NULL, NULL, NULL);
    lua_pushlstring(L, kl_buf_str(b), b->len);
    lkl_box_close(L, -2);
    return 1;
}

void lkl__open_base64(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"base64_encode", base64_encode}, {"base64_decode", base64_decode}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}

void lkl__open_cert(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"x509_request", x509_request},
        {"x509_facts", x509_facts},
        {"x509_pair", x509_pair},
        {"pair_read", pair_read},
        {"pair_write", pair_write},
        {"pair_path", pair_path},
        {"ip", ip},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
