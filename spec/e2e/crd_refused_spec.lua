-- crd_refused_spec.lua - CustomResourceDefinitions that an API server rejects: schemas that are not
-- structural, names, versions, columns, paths, conversions. All are dry runs; the messages are those of
-- kube-apiserver 1.34.
-- not in tsan: one request after the other, and what answers them is pure

local json = require "dkjson"
local new_api = require "support.api"
local servers = require "support.servers"

local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"

-- The schema of a field, or the whole, and the causes; without causes it is accepted. @ is the path of the
-- schema.
local FIELDS = {
  { "{}", "@.properties[spec].type: Required value: must not be empty for specified object fields" },
  { [[{"type":"array"}]], "@.properties[spec].items: Required value: must be specified" },
  { [[{"type":"array","items":{}}]],
    "@.properties[spec].items.type: Required value: must not be empty for specified array " .. "items" },
  { [[{"type":"array","items":[{"type":"string"}]}]],
    "@.properties[spec].items: Forbidden: items must be a schema object and not an array" },
  { [[{"type":"bogus"}]],
    [[@.properties[spec].type: Unsupported value: "bogus": supported values: "array", ]]
      .. [["boolean", "integer", "number", "object", "string"]] },
  { [[{"type":"null"}]],
    [[@.properties[spec].type: Unsupported value: "null": supported values: "array", ]]
      .. [["boolean", "integer", "number", "object", "string"]],
    "@.properties[spec].type: Forbidden: type cannot be set to null, use nullable as an "
      .. "alternative" },
  { [[{"type":"string","pattern":"[a"}]],
    [[@.properties[spec].pattern: Invalid value: "[a": must be a valid regular expression, ]]
      .. "but isn't: error parsing regexp: missing closing ]: `[a`" },
  { [[{"x-kubernetes-embedded-resource":true}]],
    "@.properties[spec].properties: Required value: must not be empty if "
      .. "x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
    "@.properties[spec].type: Required value: must be object if "
      .. "x-kubernetes-embedded-resource is true" },
  { [[{"type":"object","x-kubernetes-embedded-resource":true}]],
    "@.properties[spec].properties: Required value: must not be empty if "
      .. "x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields" },
  { [[{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-un]]
    .. [[known-fields":true,"additionalProperties":{"type":"string"}}]],
    "@.properties[spec].additionalProperties: Forbidden: must not be used if "
      .. "x-kubernetes-embedded-resource is set" },
  { [[{"x-kubernetes-int-or-string":true,"x-kubernetes-preserve-unknown-fields":true}]],
    "@.properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be "
      .. "false if x-kubernetes-int-or-string is true" },
  { [[{"x-kubernetes-int-or-string":true,"type":"string"}]] },
  { [[{"x-kubernetes-int-or-string":true,"x-kubernetes-embedded-resource":true}]],
    "@.properties[spec].properties: Required value: must not be empty if "
      .. "x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
    "@.properties[spec].type: Required value: must be object if "
      .. "x-kubernetes-embedded-resource is true",
    "@.properties[spec].x-kubernetes-embedded-resource: Invalid value: true: must be false "
      .. "if x-kubernetes-int-or-string is true" },
  { [[{"type":"object","anyOf":[{"properties":{"x":{"type":"string"}}}]}]],
    "@.properties[spec].anyOf[0].properties[x].type: Forbidden: must be empty to be " .. "structural" },
  { [[{"type":"object","anyOf":[{"properties":{"x":{"minLength":1}}}]}]] },
  { [[{"type":"string","anyOf":[{"default":"x"}]}]],
    "@.properties[spec].anyOf[0].default: Forbidden: must be undefined to be structural" },
  { [[{"type":"string","anyOf":[{"description":"x","title":"y","nullable":true}]}]],
    "@.properties[spec].anyOf[0].description: Forbidden: must be empty to be structural",
    "@.properties[spec].anyOf[0].nullable: Forbidden: must be false to be structural",
    "@.properties[spec].anyOf[0].title: Forbidden: must be empty to be structural" },
  { [[{"type":"object","not":{"x-kubernetes-preserve-unknown-fields":true}}]],
    "@.properties[spec].not.x-kubernetes-preserve-unknown-fields: Forbidden: must be false "
      .. "to be structural" },
  { [[{"type":"array","items":{"type":"string"},"allOf":[{"items":{"type":"string"}}]}]],
    "@.properties[spec].allOf[0].items.type: Forbidden: must be empty to be structural" },
  { [[{"type":"object","anyOf":[{"additionalProperties":{"type":"string"}}]}]],
    "@.properties[spec].anyOf[0].additionalProperties: Forbidden: must be undefined to be "
      .. "structural" },
  { [[{"type":"object","anyOf":[{"properties":{"metadata":{"minProperties":1}}}]}]],
    "@.properties[spec].anyOf[0].properties[metadata]: Forbidden: must not be specified in a "
      .. "nested context" },
  { [[{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}]],
    "@.properties[spec].additionalProperties: Forbidden: additionalProperties and properties "
      .. "are mutual exclusive" },
  { [[{"type":"object","additionalProperties":false}]] },
  { [[{"type":"array","items":{"type":"string"},"uniqueItems":true}]],
    "@.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the "
      .. "runtime complexity becomes quadratic" },
  { [[{"type":"object","definitions":{"a":{"type":"string"}}}]],
    "@.properties[spec].definitions: Forbidden: definitions is not supported" },
  { [[{"type":"object","dependencies":{"a":["b"]}}]],
    "@.properties[spec].dependencies: Forbidden: dependencies is not supported" },
  { [[{"type":"object","patternProperties":{"a":{"type":"string"}}}]],
    "@.properties[spec].patternProperties: Forbidden: patternProperties is not supported" },
  { [[{"$ref":"#/a"}]], "@.properties[spec].$ref: Forbidden: $ref is not supported" },
  { [[{"type":"string","id":"x","$schema":"http://json-schema.org/draft-04/schema#"}]],
    "@.properties[spec].id: Forbidden: id is not supported" },
  { [[{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"bogus"}]],
    [[@.properties[spec].x-kubernetes-list-type: Unsupported value: "bogus": supported ]]
      .. [[values: "atomic", "set", "map"]] },
  { [[{"type":"object","x-kubernetes-list-type":"set"}]],
    [[@.properties[spec].type: Invalid value: "object": must be array if ]]
      .. "x-kubernetes-list-type is specified" },
  { [[{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}},"]]
    .. [[x-kubernetes-list-type":"map"}]],
    "@.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if "
      .. "x-kubernetes-list-type is map" },
  { [[{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}},"]]
    .. [[x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["b"]}]],
    [[@.properties[spec].x-kubernetes-list-map-keys: Invalid value: ["b"]: entries must all ]]
      .. "be names of item properties" },
  { [[{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}},"]]
    .. [[x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"]}]],
    "@.properties[spec].items.properties[a].default: Required value: this property is in "
      .. "x-kubernetes-list-map-keys, so it must have a default or be a required property" },
  { [[{"type":"array","items":{"type":"object","required":["a"],"properties":{"a":{"ty]]
    .. [[pe":"string"}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"]] .. [[,"a"]}]],
    [[@.properties[spec].x-kubernetes-list-map-keys: Invalid value: ["a","a"]: must not ]]
      .. "contain duplicate entries" },
  { [[{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"map","x-kube]]
    .. [[rnetes-list-map-keys":["a"]}]],
    [[@.properties[spec].items.type: Invalid value: "string": must be object if parent ]]
      .. "array's x-kubernetes-list-type is map" },
  { [[{"type":"array","items":{"type":"object"},"x-kubernetes-list-map-keys":["a"]}]],
    "@.properties[spec].x-kubernetes-list-type: Required value: must be map if "
      .. "x-kubernetes-list-map-keys is non-empty" },
  { [[{"type":"array","items":{"type":"object","required":["a"],"properties":{"a":{"ty]]
    .. [[pe":"array","items":{"type":"string"}}}},"x-kubernetes-list-type":"map","x-kuber]]
    .. [[netes-list-map-keys":["a"]}]],
    [[@.properties[spec].items.properties[a].type: Invalid value: "object": must be a scalar ]]
      .. "type if parent array's x-kubernetes-list-type is map" },
  { [[{"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"set"}]],
    "@.properties[spec].items.x-kubernetes-map-type: Invalid value: null: must be atomic as "
      .. "item of a list with x-kubernetes-list-type=set" },
  { [[{"type":"array","items":{"type":"object","x-kubernetes-map-type":"atomic"},"x-ku]]
    .. [[bernetes-list-type":"set"}]] },
  { [[{"type":"array","items":{"type":"array","items":{"type":"string"}},"x-kubernetes-list-type":"set"}]] },
  { [[{"type":"array","items":{"type":"string","nullable":true},"x-kubernetes-list-type":"set"}]],
    "@.properties[spec].items.nullable: Forbidden: cannot be nullable when "
      .. "x-kubernetes-list-type is set" },
  { [[{"type":"object","x-kubernetes-map-type":"x"}]],
    [[@.properties[spec].x-kubernetes-map-type: Unsupported value: "x": supported values: ]]
      .. [["atomic", "granular"]] },
  { [[{"type":"string","x-kubernetes-map-type":"atomic"}]],
    [[@.properties[spec].type: Invalid value: "string": must be object if ]]
      .. "x-kubernetes-map-type is specified" },
  { [[{"type":"string","default":5}]],
    [[@.properties[spec].default: Invalid value: "integer":  in body must be of type string: ]]
      .. [["integer"]] },
  { [[{"type":"string","default":"c","enum":["a","b"]}]],
    [[@.properties[spec].default: Unsupported value: "c": supported values: "a", "b"]] },
  { [[{"type":"object","properties":{"a":{"type":"string"}},"default":{"b":1}}]],
    [[@.properties[spec].default: Invalid value: {"b":1}: must not have unknown fields]] },
  { [[{"type":"string","default":null}]] },
  { [[{"type":"string","nullable":true,"default":null}]] },
  { [[{"type":"string","minLength":-1,"maxLength":-2}]] },
  { [[{"type":"integer","format":"int32"}]] },
  { [[{"type":"string","enum":[]}]] },
  { [[{"type":"object","properties":{"a":{"type":"string"}},"required":["a","a"]}]] },
  { [[{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}]] },
  { [[{"type":"string","example":"x","externalDocs":{"url":"u"}}]] },
  { [[{"type":"object","x-kubernetes-preserve-unknown-fields":false}]],
    "@.properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be "
      .. "true or undefined" },
  { [[{"type":"object","additionalProperties":{}}]],
    "@.properties[spec].additionalProperties.type: Required value: must not be empty for "
      .. "specified object fields" },
  { [[{"type":"array","items":{"type":"string"},"additionalItems":{"type":"string"}}]],
    "@.properties[spec].additionalItems: Forbidden: additionalItems is not supported" },
  { [[{"type":"integer","multipleOf":0}]] },
  { [[{"type":"integer","multipleOf":-1}]] },
  { [[{"type":"integer","exclusiveMinimum":true}]] },
}

local WHOLE = {
  { [[{"type":"string"}]], [[@.type: Invalid value: "string": must be object at the root]] },
  { [[{"properties":{}}]], "@.type: Required value: must not be empty at the root" },
  { [[{"type":"object","additionalProperties":{"type":"string"}}]],
    "@.additionalProperties: Forbidden: must not be used at the root" },
  { [[{"type":"object","properties":{"metadata":{"type":"object","properties":{"labels]]
    .. [[":{"type":"object"}}}}}]],
    "@.properties[metadata]: Forbidden: must not specify anything other than name and "
      .. "generateName, but metadata is implicitly specified" },
  { [[{"type":"object","properties":{"metadata":{"type":"string"}}}]],
    [[@.properties[metadata].type: Invalid value: "string": must be object]] },
  { [[{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":]]
    .. [[{"type":"string","pattern":"a"}}}}}]] },
  { [[{"type":"object","properties":{"kind":{"type":"integer"},"apiVersion":{"type":"integer"}}}]],
    [[@.properties[apiVersion].type: Invalid value: "integer": must be string]],
    [[@.properties[kind].type: Invalid value: "integer": must be string]] },
  { [[{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":]]
    .. [[{"type":"string","default":"x"}}}}}]],
    "@.properties[metadata].properties[name].default: Forbidden: must not be set in "
      .. "top-level metadata" },
}

-- A definition (its spec), its name, and the causes.
local DEFINITIONS = {
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}]}]],
    "x", [[metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group]] },
  { [[{"scope":"Namespaced","names":{"plural":"gadgets","kind":"Gadget"},"versions":[{]]
    .. [["name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"ob]] .. [[ject"}}}]}]],
    "gadgets.probe.example.com",
    [[metadata.name: Invalid value: "gadgets.probe.example.com": must be ]]
      .. [[spec.names.plural+"."+spec.group]],
    "spec.group: Required value" },
  { [[{"group":"A_b.c","scope":"Namespaced","names":{"plural":"gadgets","kind":"Gadget]]
    .. [["},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Sch]]
    .. [[ema":{"type":"object"}}}]}]],
    "gadgets.A_b.c",
    [[metadata.name: Invalid value: "gadgets.A_b.c": a lowercase RFC 1123 subdomain must ]]
      .. "consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
      .. "an alphanumeric character (e.g. 'example.com', regex used for validation is "
      .. [['[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')]],
    [[spec.group: Invalid value: "A_b.c": a lowercase RFC 1123 subdomain must consist of ]]
      .. "lower case alphanumeric characters, '-' or '.', and must start and end with an "
      .. "alphanumeric character (e.g. 'example.com', regex used for validation is "
      .. [['[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')]] },
  { [[{"group":"foo","scope":"Namespaced","names":{"plural":"gadgets","kind":"Gadget"}]]
    .. [[,"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schem]]
    .. [[a":{"type":"object"}}}]}]],
    "gadgets.foo", [[spec.group: Invalid value: "foo": should be a domain with at least one dot]] },
  { [[{"group":"probe.example.com","names":{"plural":"gadgets","kind":"Gadget"},"versi]]
    .. [[ons":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"ty]]
    .. [[pe":"object"}}}]}]],
    "gadgets.probe.example.com", "spec.scope: Required value" },
  { [[{"group":"probe.example.com","scope":"Bogus","names":{"plural":"gadgets","kind":]]
    .. [["Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openA]]
    .. [[PIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com",
    [[spec.scope: Unsupported value: "Bogus": supported values: "Cluster", "Namespaced"]] },
  { [[{"group":"probe.example.com","scope":"Namespaced","versions":[{"name":"v1","serv]]
    .. [[ed":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com",
    [[metadata.name: Invalid value: "gadgets.probe.example.com": must be ]]
      .. [[spec.names.plural+"."+spec.group]],
    "spec.names.plural: Required value", "spec.names.singular: Required value",
    "spec.names.kind: Required value", "spec.names.listKind: Required value" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets"},"]]
    .. [[versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema"]]
    .. [[:{"type":"object"}}}]}]],
    "gadgets.probe.example.com", "spec.names.singular: Required value", "spec.names.kind: Required value",
    "spec.names.listKind: Required value" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"a_b"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"ope]]
    .. [[nAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com",
    [[spec.names.singular: Invalid value: "a_b": a DNS-1035 label must consist of lower case ]]
      .. "alphanumeric characters or '-', start with an alphabetic character, and end with an "
      .. "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
      .. "'[a-z]([-a-z0-9]*[a-z0-9])?')",
    [[spec.names.kind: Invalid value: "a_b": may have mixed case, but should otherwise match: ]]
      .. "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
      .. "an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
      .. "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
    [[spec.names.listKind: Invalid value: "a_bList": may have mixed case, but should ]]
      .. "otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or "
      .. "'-', start with an alphabetic character, and end with an alphanumeric character (e.g. "
      .. "'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"Gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}]}]],
    "Gadgets.probe.example.com",
    [[metadata.name: Invalid value: "Gadgets.probe.example.com": a lowercase RFC 1123 ]]
      .. "subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
      .. "start and end with an alphanumeric character (e.g. 'example.com', regex used for "
      .. [[validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')]],
    [[spec.names.plural: Invalid value: "Gadgets": a DNS-1035 label must consist of lower ]]
      .. "case alphanumeric characters or '-', start with an alphabetic character, and end with "
      .. "an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
      .. "'[a-z]([-a-z0-9]*[a-z0-9])?')" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget","shortNames":["A B"]},"versions":[{"name":"v1","served":true,"stor]]
    .. [[age":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com",
    [[spec.names.shortNames[0]: Invalid value: "A B": a DNS-1035 label must consist of lower ]]
      .. "case alphanumeric characters or '-', start with an alphabetic character, and end with "
      .. "an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
      .. "'[a-z]([-a-z0-9]*[a-z0-9])?')" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget","categories":["A"]},"versions":[{"name":"v1","served":true,"storag]]
    .. [[e":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com",
    [[spec.names.categories[0]: Invalid value: "A": a DNS-1035 label must consist of lower ]]
      .. "case alphanumeric characters or '-', start with an alphabetic character, and end with "
      .. "an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
      .. "'[a-z]([-a-z0-9]*[a-z0-9])?')" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget","listKind":"Gadget"},"versions":[{"name":"v1","served":true,"stora]]
    .. [[ge":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com",
    [[spec.names.listKind: Invalid value: "Gadget": kind and listKind may not be the same]] },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget","singular":"A"},"versions":[{"name":"v1","served":true,"storage":t]]
    .. [[rue,"schema":{"openAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com",
    [[spec.names.singular: Invalid value: "A": a DNS-1035 label must consist of lower case ]]
      .. "alphanumeric characters or '-', start with an alphabetic character, and end with an "
      .. "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
      .. "'[a-z]([-a-z0-9]*[a-z0-9])?')" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","kind":"Gadget"}}]],
    "gadgets.probe.example.com",
    "spec.versions: Invalid value: null: must have exactly one version marked as storage " .. "version",
    "status.storedVersions: Invalid value: null: must have at least one stored version" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[]}]],
    "gadgets.probe.example.com",
    "spec.versions: Invalid value: []: must have exactly one version marked as storage " .. "version",
    "status.storedVersions: Invalid value: null: must have at least one stored version" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true}]}]],
    "gadgets.probe.example.com", "spec.versions[0].schema.openAPIV3Schema: Required value" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":false,"schema":{]]
    .. [["openAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com",
    [[spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":f]]
      .. [[alse,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColum]]
      .. [[ns":null,"SelectableFields":null}]: must have exactly one version marked as storage ]]
      .. "version",
    "status.storedVersions: Invalid value: null: must have at least one stored version" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}},{"name":"v1","served":true,"storage":false,]]
    .. [["schema":{"openAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com",
    [[spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":true,"Deprecated":fa]]
      .. [[lse,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumn]]
      .. [[s":null,"SelectableFields":null},{"Name":"v1","Served":true,"Storage":false,"Deprecated"]]
      .. [[:false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterCol]]
      .. [[umns":null,"SelectableFields":null}]: must contain unique version names]] },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"V_1","served":true,"storage":true,"schema":{]]
    .. [["openAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com",
    [[spec.versions[0].name: Invalid value: "V_1": a DNS-1035 label must consist of lower ]]
      .. "case alphanumeric characters or '-', start with an alphabetic character, and end with "
      .. "an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
      .. "'[a-z]([-a-z0-9]*[a-z0-9])?')",
    [[spec.version: Invalid value: "V_1": a DNS-1035 label must consist of lower case ]]
      .. "alphanumeric characters or '-', start with an alphabetic character, and end with an "
      .. "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
      .. "'[a-z]([-a-z0-9]*[a-z0-9])?')" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":false,"storage":true,"schema":{]]
    .. [["openAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.probe.example.com" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}],"conversion":{"strategy":"Webhook"}}]],
    "gadgets.probe.example.com",
    "spec.conversion.webhookClientConfig: Required value: required when strategy is set to " .. "Webhook",
    "spec.conversion.conversionReviewVersions: Required value" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}],"conversion":{"strategy":"X"}}]],
    "gadgets.probe.example.com",
    [[spec.conversion.strategy: Unsupported value: "X": supported values: "None", "Webhook"]] },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}],"conversion":{"strategy":"None","webhook":]]
    .. [[{"conversionReviewVersions":["v1"]}}}]],
    "gadgets.probe.example.com",
    "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is "
      .. "not set to Webhook" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}],"conversion":{"strategy":"Webhook","webhoo]]
    .. [[k":{"conversionReviewVersions":["v1"]}}}]],
    "gadgets.probe.example.com",
    "spec.conversion.webhookClientConfig: Required value: required when strategy is set to " .. "Webhook" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}],"conversion":{"strategy":"Webhook","webhoo]]
    .. [[k":{"conversionReviewVersions":["v2"],"clientConfig":{"url":"https://x/"}}}}]],
    "gadgets.probe.example.com",
    [[spec.conversion.conversionReviewVersions: Invalid value: ["v2"]: must include at least ]]
      .. "one of v1, v1beta1" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}],"conversion":{"strategy":"Webhook","webhoo]]
    .. [[k":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"http://x/"}}}}]],
    "gadgets.probe.example.com",
    [[spec.conversion.webhookClientConfig.url: Invalid value: "http": 'https' is the only ]]
      .. "allowed URL scheme; desired format: https://host[/path]" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}],"conversion":{"strategy":"Webhook","webhoo]]
    .. [[k":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://x/","servic]]
    .. [[e":{"name":"a","namespace":"b"}}}}}]],
    "gadgets.probe.example.com",
    "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is "
      .. "required" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}],"conversion":{"strategy":"Webhook","webhoo]]
    .. [[k":{"clientConfig":{"url":"https://x/"}}}}]],
    "gadgets.probe.example.com", "spec.conversion.conversionReviewVersions: Required value" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}},"additionalPrinterColumns":[{"type":"string"]]
    .. [[,"jsonPath":".a"}]}]}]],
    "gadgets.probe.example.com", "spec.additionalPrinterColumns[0].name: Required value" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}},"additionalPrinterColumns":[{"name":"a","typ]]
    .. [[e":"x","jsonPath":".a"}]}]}]],
    "gadgets.probe.example.com",
    [[spec.additionalPrinterColumns[0].type: Invalid value: "x": must be one of ]]
      .. "boolean,date,integer,number,string" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}},"additionalPrinterColumns":[{"name":"a","typ]]
    .. [[e":"string"}]}]}]],
    "gadgets.probe.example.com", "spec.additionalPrinterColumns[0].JSONPath: Required value" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}},"additionalPrinterColumns":[{"name":"a","typ]]
    .. [[e":"string","jsonPath":"a"}]}]}]],
    "gadgets.probe.example.com",
    [[spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json ]]
      .. "path starting with ." },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}},"additionalPrinterColumns":[{"name":"a","typ]]
    .. [[e":"string","format":"x","jsonPath":".a"}]}]}]],
    "gadgets.probe.example.com",
    [[spec.additionalPrinterColumns[0].format: Invalid value: "x": must be one of ]]
      .. "byte,date,date-time,double,float,int32,int64,password" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}},"subresources":{"scale":{"specReplicasPath":]]
    .. [[".a","statusReplicasPath":".b"}}}]}]],
    "gadgets.probe.example.com",
    [[spec.subresources.scale.specReplicasPath: Invalid value: ".a": should be a json path ]]
      .. "under .spec",
    [[spec.subresources.scale.statusReplicasPath: Invalid value: ".b": should be a json path ]]
      .. "under .status" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}},"subresources":{"scale":{}}}]}]],
    "gadgets.probe.example.com", "spec.subresources.scale.specReplicasPath: Required value",
    "spec.subresources.scale.statusReplicasPath: Required value" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}},"selectableFields":[{"jsonPath":".spec.x"}]}]] .. "]}",
    "gadgets.probe.example.com",
    [[spec.selectableFields[0].jsonPath: Invalid value: ".spec.x": is an invalid path: does ]]
      .. "not refer to a valid field" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}},"selectableFields":[{"jsonPath":"spec[0]"}]}]] .. "]}",
    "gadgets.probe.example.com",
    [[spec.selectableFields[0].jsonPath: Invalid value: "spec[0]": is an invalid path: ]]
      .. "expected [ or . but got: spec" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}},"selectableFields":[{"jsonPath":".metadata.n]]
      .. [[ame"}]}]}]],
    "gadgets.probe.example.com",
    [[spec.selectableFields[0].jsonPath: Invalid value: ".metadata.name": is an invalid path: ]]
      .. "does not refer to a valid field" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}],"preserveUnknownFields":true}]],
    "gadgets.probe.example.com",
    "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
      .. "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead" },
  { [[{"group":"x.k8s.io","scope":"Namespaced","names":{"plural":"gadgets","kind":"Gad]]
    .. [[get"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3]]
    .. [[Schema":{"type":"object"}}}]}]],
    "gadgets.x.k8s.io",
    "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must "
      .. [[have approval annotation "api-approved.kubernetes.io", see ]]
      .. "https://github.com/kubernetes/enhancements/pull/1111" },
  { [[{"group":"foo.kubernetes.io","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object"}}}]}]],
    "gadgets.foo.kubernetes.io",
    "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must "
      .. [[have approval annotation "api-approved.kubernetes.io", see ]]
      .. "https://github.com/kubernetes/enhancements/pull/1111" },
  { [[{"group":"probe.example.com","scope":"Namespaced","names":{"plural":"gadgets","k]]
    .. [[ind":"Gadget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"]]
    .. [[openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","propert]]
    .. [[ies":{"x":{"type":"string"},"o":{"type":"object"},"a":{"type":"array","items":{"]]
    .. [[type":"string"}}}}}}},"selectableFields":[{"jsonPath":".spec.x"},{"jsonPath":".s]]
    .. [[pec.x"},{"jsonPath":".spec.o"},{"jsonPath":".spec.a[0]"}]}]}]],
    "gadgets.probe.example.com", [[spec.selectableFields[1].jsonPath: Duplicate value: ".spec.x"]],
    [[spec.selectableFields[2].jsonPath: Invalid value: ".spec.o": must point to a field of ]]
      .. "type string, boolean or integer. Enum string fields and strings with formats are " .. "allowed.",
    [[spec.selectableFields[3].jsonPath: Invalid value: ".spec.a[0]": is an invalid path: ]]
      .. "array notation is not allowed" },
}

servers.each(function(name, start)
  describe(name .. " says of a CustomResourceDefinition", function()
    local s, api

    lazy_setup(function()
      s = start {}
      api = new_api(s)
    end)
    lazy_teardown(function() s:stop() end)

    local function check(crd, want, about)
      local r, said = api:post(CRDS, crd), {}
      if r.code == 422 then
        for i, cause in ipairs(r.body.details.causes) do said[i] = cause.field .. ": " .. cause.message end
      else
        assert.equal(201, r.code, about .. "\n" .. r.text)
      end
      for i, text in ipairs(want) do want[i] = text:gsub("@", "spec.validation.openAPIV3Schema") end
      assert.same(want, said, about)
    end

    local function with_schema(schema)
      return { metadata = { name = "gadgets.refused.example.com" }, spec = { group = "refused.example.com",
        scope = "Namespaced", names = { plural = "gadgets", kind = "Gadget" }, versions = { { name = "v1",
          served = true, storage = true, schema = { openAPIV3Schema = schema } } } } }
    end

    it("what is wrong with the schema of a field", function()
      for _, case in ipairs(FIELDS) do
        check(with_schema { type = "object", properties = { spec = json.decode(case[1]) } },
          { table.unpack(case, 2) }, case[1])
      end
    end)

    it("what is wrong with a whole schema", function()
      for _, case in ipairs(WHOLE) do
        check(with_schema(json.decode(case[1])), { table.unpack(case, 2) }, case[1])
      end
    end)

    it("what is wrong with names, versions, columns, paths and conversions", function()
      for _, case in ipairs(DEFINITIONS) do
        check({ metadata = { name = case[2] }, spec = json.decode(case[1]) }, { table.unpack(case, 3) },
          case[1])
      end
    end)
  end)
end)
