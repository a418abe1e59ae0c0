-- luarocks make deploy/kubelua-0.1.0-1.rockspec, in the checkout: the module for stock Lua 5.4, without the binary.
rockspec_format = "3.0"
package = "kubelua"
version = "0.1.0-1"
source = { url = "git+file://." }
description = {
  summary = "Kubernetes clients and controllers in Lua",
  detailed = "A client, informers, typed clientsets, immutable views, quantities and selectors, on a C core. The runtime for controllers is the program kubelua.",
  license = "Apache-2.0",
  labels = { "kubernetes" },
}
dependencies = { "lua ~> 5.4" }
-- The C libraries (libcurl, libcjson, libyaml, libmicrohttpd, libwslay, libedit, RE2, OpenSSL) are found by pkg-config; on Debian the Makefile installs them.
build = {
  type = "make",
  build_target = "module",
  install_target = "install-module",
  build_variables = { CFLAGS = "$(CFLAGS)", LUA_CFLAGS = "-I$(LUA_INCDIR)" },
  install_variables = { LUADIR = "$(LUADIR)", LIBDIR = "$(LIBDIR)" },
}
