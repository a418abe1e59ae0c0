/* lqty.c - resource quantities in Lua: exact, with the arithmetic and the text forms of apimachinery.
 *
 * Wherever one quantity is wanted, its text ("500m"), an integer, or a float with an exact short decimal
 * form will do. A sum keeps the format of its left side (of the right when the left is zero), as in Go. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "state/border.h"
#include "model/quantity.h"

static void free_quantity(void *ptr) { kl_quantity_free(ptr); }

extern const lkl_class lkl__quantity_class;

static const kl_quantity *get_quantity(lua_State *L, int idx)
{
    return lkl_box_get(L, idx, &lkl__quantity_class);
}

static lkl_box *new_quantity(lua_State *L) { return lkl_box_new(L, &lkl__quantity_class, 0); }

/* The box owns the quantity from now on. */
static const kl_quantity *fill(lua_State *L, lkl_box *box, kl_quantity *q)
{
    box->ptr = q;
    lkl_box_charge(L, box, kl_quantity_bytes(q));
    return q;
}

/* Makes the quantity at idx out of what stands there; the number is a quantity of its own afterwards. */
static const kl_quantity *to_quantity(lua_State *L, int idx)
{
    char text[40];
    const char *from = text;
    const kl_quantity *q = get_quantity(L, idx);
    if (q)
        return q;
    if (lua_isinteger(L, idx)) {
        lkl_box *box = new_quantity(L);
        q = fill(L, box, kl_quantity_new(lua_tointeger(L, idx), 0, KL_DECIMAL_SI));
        lua_replace(L, idx);
        return q;
    }
    if (lua_type(L, idx) == LUA_TNUMBER) {
        double d = lua_tonumber(L, idx);
        if (!isfinite(d))
            luaL_argerror(L, idx, "a quantity is a finite number");
        for (int digits = 1; digits <= 17; digits++) { /* the shortest text that reads back as the same number
                                                        */
            snprintf(text, sizeof text, "%.*g", digits, d);
            if (strtod(text, NULL) == d)
                break;
        }
        char *plus = strstr(text, "e+"); /* "1e+20": a quantity is written 1e20 */
        if (plus)
            memmove(plus + 1, plus + 2, strlen(plus + 2) + 1);
    } else if (lua_type(L, idx) == LUA_TSTRING) {
        from = lkl__text(L, idx);
    } else {
        luaL_typeerror(L, idx, "quantity, its text or a number");
    }
    lkl_box *box = new_quantity(L);
    kl_err err = KL_ERR_INIT;
    kl_quantity *made = NULL;
    if (kl_quantity_parse(from, &made, &err))
        lkl__argerror(L, idx, &err);
    (void)fill(L, box, made);
    lua_replace(L, idx);
    return made;
}

bool lkl__quantity_text(lua_State *L, int idx)
{
    const kl_quantity *q = get_quantity(L, idx);
    if (q)
        lkl__push_text(L, kl_quantity_text(q));
    return q != NULL;
}

/* --- arithmetic --------------------------------------------------------------------------- */

static int add(lua_State *L)
{
    const kl_quantity *a = to_quantity(L, 1), *b = to_quantity(L, 2);
    lkl_box *box = new_quantity(L);
    (void)fill(L, box, kl_quantity_add(a, b));
    return 1;
}

static int sub(lua_State *L)
{
    const kl_quantity *a = to_quantity(L, 1), *b = to_quantity(L, 2);
    lkl_box *box = new_quantity(L);
    (void)fill(L, box, kl_quantity_sub(a, b));
    return 1;
}

static int neg(lua_State *L)
{
    const kl_quantity *a = to_quantity(L, 1);
    lkl_box *box = new_quantity(L);
    (void)fill(L, box, kl_quantity_neg(a));
    return 1;
}

/* Multiplies by an integer, on either side. The product with a ratio would not be exact: the message says to
 * round with :value() or :milli() first. */
static int mul(lua_State *L)
{
    int number = get_quantity(L, 1) ? 2 : 1, isint;
    lua_Integer by = lua_tointegerx(L, number, &isint);
    if (!isint || lua_type(L, number) != LUA_TNUMBER)
        return luaL_argerror(L, number,
            "a quantity can be multiplied only by an integer; for a ratio write "
            "kube.milli(math.floor(q:milli() * ratio))");
    const kl_quantity *q = to_quantity(L, 3 - number);
    lkl_box *box = new_quantity(L);
    (void)fill(L, box, kl_quantity_mul(q, by, NULL));
    return 1;
}

static int eq(lua_State *L)
{
    const kl_quantity *a = get_quantity(L, 1), *b = get_quantity(L, 2);
    lua_pushboolean(L, a && b && kl_quantity_cmp(a, b) == 0);
    return 1;
}

static int lt(lua_State *L)
{
    const kl_quantity *a = to_quantity(L, 1), *b = to_quantity(L, 2);
    lua_pushboolean(L, kl_quantity_cmp(a, b) < 0);
    return 1;
}

static int le(lua_State *L)
{
    const kl_quantity *a = to_quantity(L, 1), *b = to_quantity(L, 2);
    lua_pushboolean(L, kl_quantity_cmp(a, b) <= 0);
    return 1;
}

/* --- methods ------------------------------------------------------------------------------ */

static const kl_quantity *self(lua_State *L) { return lkl_box_check(L, 1, &lkl__quantity_class); }

static int cmp(lua_State *L)
{
    const kl_quantity *a = self(L), *b = to_quantity(L, 2);
    int order = kl_quantity_cmp(a, b);
    lua_pushinteger(L, order < 0 ? -1 : order > 0);
    return 1;
}

static int push_integer(lua_State *L, bool fits, int64_t n, const char *unit)
{
    if (!fits) {
        lkl__quantity_text(L, 1);
        return lkl__error(L, "quantity %s in units of %s does not fit 64 bits", lua_tostring(L, -1), unit);
    }
    lua_pushinteger(L, n);
    return 1;
}

static int value(lua_State *L)
{
    int64_t n = 0;
    bool fits = kl_quantity_value(self(L), &n);
    return push_integer(L, fits, n, "1");
}

static int milli(lua_State *L)
{
    int64_t n = 0;
    bool fits = kl_quantity_milli(self(L), &n);
    return push_integer(L, fits, n, "1/1000");
}

static int scaled(lua_State *L)
{
    const kl_quantity *q = self(L);
    lua_Integer scale = luaL_checkinteger(L, 2);
    luaL_argcheck(L, scale >= -1000 && scale <= 1000, 2, "a power of ten from -1000 to 1000");
    int64_t n = 0;
    bool fits = kl_quantity_scaled(q, (int)scale, &n);
    return push_integer(L, fits, n, lua_pushfstring(L, "10^%d", (int)scale));
}

static int number(lua_State *L)
{
    lua_pushnumber(L, kl_quantity_double(self(L)));
    return 1;
}

static int sign(lua_State *L)
{
    lua_pushinteger(L, kl_quantity_sign(self(L)));
    return 1;
}

static int is_zero(lua_State *L)
{
    lua_pushboolean(L, kl_quantity_sign(self(L)) == 0);
    return 1;
}

static int canonical(lua_State *L)
{
    lkl__push_text(L, kl_quantity_canonical(self(L), NULL, NULL));
    return 1;
}

static int format(lua_State *L)
{
    lua_pushstring(L, kl_quantity_format_name(kl_quantity_format_of(self(L))));
    return 1;
}

static int tostring(lua_State *L)
{
    lkl__push_text(L, kl_quantity_text(self(L)));
    return 1;
}

static const luaL_Reg methods[] = {
    {"cmp", cmp},
    {"value", value},
    {"milli", milli},
    {"scaled", scaled},
    {"number", number},
    {"sign", sign},
    {"is_zero", is_zero},
    {"canonical", canonical},
    {"format", format},
    {NULL, NULL},
};
static const luaL_Reg meta[] = {
    {"__add", add},
    {"__sub", sub},
    {"__unm", neg},
    {"__mul", mul},
    {"__eq", eq},
    {"__lt", lt},
    {"__le", le},
    {"__tostring", tostring},
    {NULL, NULL},
};
const lkl_class lkl__quantity_class = {"kubelua.quantity", free_quantity, methods, meta};

/* --- functions ---------------------------------------------------------------------------- */

/* kube.qty(x) */
static int qty(lua_State *L)
{
    lua_settop(L, 1);
    to_quantity(L, 1);
    return 1;
}

/* kube.milli(n): n thousandths; of a quantity, the same quantity rounded up to thousandths */
static int milli_of(lua_State *L)
{
    lua_settop(L, 1);
    const kl_quantity *q = get_quantity(L, 1);
    lkl_box *box = new_quantity(L);
    (void)fill(L, box,
        q ? kl_quantity_round_up(q, -3, NULL) : kl_quantity_new(luaL_checkinteger(L, 1), -3, KL_DECIMAL_SI));
    return 1;
}

/* kube.to_milli(x): kube.qty(x):milli(), without a quantity for an integer and a plain text */
int lkl__to_milli(lua_State *L)
{
    int64_t n = 0;
    size_t len;
    lua_settop(L, 1);
    const char *text = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &len) : NULL;
    bool plain = text ? kl_quantity_read_milli(text, len, &n)
                      : lua_isinteger(L, 1) && !__builtin_mul_overflow(lua_tointeger(L, 1), 1000, &n);
    if (plain) {
        lua_pushinteger(L, n);
        return 1;
    }
    to_quantity(L, 1);
    return milli(L);
}

static int is_quantity(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, get_quantity(L, 1) != NULL);
    return 1;
}

void lkl__open_quantity(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"qty", qty},
        {"milli", milli_of},
        {"to_milli", lkl__to_milli},
        {"is_quantity", is_quantity},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
