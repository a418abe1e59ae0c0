---@meta kubelua.typed_meta
-- luacheck: ignore 241
-- typed_meta.lua - what generated clientsets (kubelua gen) share, for the Lua language server. It is never
-- loaded.

error "typed_meta.lua is for editors; require the generated module instead"

--- "500m", "1Gi", 2 or kube.qty(...). Reading gives the text or number that the object has.
---@alias kubelua.Quantity string|number|kubelua.quantity

---@class kubelua.OwnerReference
---@field apiVersion string
---@field kind string
---@field name string
---@field uid string
---@field controller boolean?
---@field blockOwnerDeletion boolean?

---@class kubelua.ManagedFields
---@field manager string
---@field operation "Apply"|"Update"
---@field apiVersion string
---@field time string?
---@field fieldsType string
---@field fieldsV1 table<string, any>
---@field subresource string?

--- Metadata for writing: every field is optional.
---@class kubelua.MetadataApply
---@field name string?
---@field generateName string?        the server appends a word of its own
---@field namespace string?
---@field labels table<string, string>?
---@field annotations table<string, string>?
---@field finalizers string[]?
---@field ownerReferences kubelua.OwnerReference[]?
---@field uid string?
---@field resourceVersion string?
---@field generation integer?
---@field creationTimestamp string?
---@field deletionTimestamp string?
---@field deletionGracePeriodSeconds integer?
---@field managedFields kubelua.ManagedFields[]?
---@field selfLink string?

--- Metadata of an object that came from a server.
---@class kubelua.Metadata: kubelua.MetadataApply
---@field name string
---@field uid string
---@field resourceVersion string
---@field creationTimestamp string
