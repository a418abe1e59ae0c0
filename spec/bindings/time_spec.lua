-- time_spec.lua - durations and times in Lua.

local kube = require "kubelua"

describe("kube.duration", function()
  it("reads Go's text as seconds", function()
    assert.equal(3900, kube.duration "1h5m")
    assert.equal("integer", math.type(kube.duration "1h5m"))
    assert.equal(0.05, kube.duration "50ms")
    assert.equal(-1.5, kube.duration "-1.5s")
    assert.equal(7, kube.duration(7))
  end)

  it("is a number: it adds, divides, compares and shifts times", function()
    local hour = kube.duration "1h"
    assert.equal(5430, hour * 1.5 + 30)
    assert.is_true(kube.duration "90s" < hour and kube.duration "60m" == hour)
    assert.equal("30m0s", kube.format_duration(hour / 2))
    local t = kube.time "2026-01-02T15:04:05Z"
    assert.is_true((t + hour) - t == hour and t + hour * 2 == t + "2h" and t - "1h" == t - hour)
    assert.equal("1h30m0s", kube.format_duration(t - "2026-01-02T13:34:05Z"))
  end)

  it("rejects an invalid one", function()
    assert.error_matches(function() kube.duration "5 minutes" end,
      '^kube.duration: "5 minutes" is not a duration: unknown unit; write it as 300ms')
    assert.error_matches(function() kube.duration "10" end, '"10" is not a duration: a number has no unit')
    assert.error_matches(function() kube.duration {} end, "expected seconds or a duration such as")
    assert.error_matches(function() kube.duration(1e300) end, "too many seconds for a duration")
    assert.error_matches(function() kube.duration(math.maxinteger) end, "too many seconds for a duration")
  end)

  it("is written as Go writes it", function()
    assert.equal("1h5m0s", kube.format_duration(3900))
    assert.equal("1m30.5s", kube.format_duration(90.5))
    assert.equal("50ms", kube.format_duration "50ms")
    assert.equal("0s", kube.format_duration(0))
  end)
end)

describe("a time", function()
  local t = kube.time "2026-01-02T15:04:05Z"

  it("is made from RFC 3339 text, Unix seconds and times", function()
    assert.equal(1767366245, t:unix())
    assert.is_true(t == kube.time(1767366245))
    assert.is_true(t == kube.time(t))
    assert.is_true(t == kube.time "2026-01-02T16:04:05+01:00")
    assert.error_matches(function() kube.time "yesterday" end, "yesterday")
    assert.error_matches(function() kube.time {} end, "RFC 3339")
  end)

  it("keeps fractions", function()
    local micro = kube.time "2026-01-02T15:04:05.123456Z"
    assert.equal("2026-01-02T15:04:05.123456Z", micro:micro())
    assert.equal(1767366245, micro:unix())
    assert.is_true(math.abs(micro:seconds() - 1767366245.123456) < 1e-6)
    assert.equal(1767366245, t:seconds())
  end)

  it("gives seconds when another is subtracted, and moves by seconds and durations", function()
    assert.equal(5, t - kube.time "2026-01-02T15:04:00Z")
    assert.equal(4.5, t - kube.time "2026-01-02T15:04:00.5Z")
    assert.equal("2026-01-02T16:04:05Z", tostring(t + 3600))
    assert.equal("2026-01-02T16:04:05Z", tostring("1h" + t))
    assert.equal(5, t - "2026-01-02T15:04:00Z")
    assert.is_true(t > "2026-01-02T15:04:00Z" and t < "2026-01-02T15:04:06Z")
    assert.equal("2026-01-02T15:03:05Z", tostring(t - "1m"))
    assert.equal("2026-01-02T15:04:04.500000Z", (t - 0.5):micro())
    assert.equal(10, (t:unix() + 10) - t)
    assert.error_matches(function() return t + t end, "two times cannot be added")
  end)

  it("compares with times and Unix seconds", function()
    assert.is_true(t < t + 1)
    assert.is_true(t <= t:unix())
    assert.is_true(t > 0)
  end)

  it("is RFC 3339 as a string and in objects", function()
    assert.equal("2026-01-02T15:04:05Z", tostring(t))
    assert.equal('{"at":"2026-01-02T15:04:05Z"}', kube.encode { at = t })
    assert.equal("1970-01-01T00:00:00Z", kube.format_time(0))
    assert.error_matches(function() tostring(kube.time(1e12)) end, "years 0 to 9999")
  end)

  it("stays within the range of sums and differences", function()
    assert.error_matches(function()
      return kube.time(math.maxinteger)
    end, "too many seconds: the year cannot be written")
    assert.error_matches(function()
      return kube.time(math.mininteger)
    end, "too many seconds: the year cannot be written")
    assert.error_matches(function()
      return t < math.maxinteger
    end, "too many seconds: the year cannot be written")
    local far = kube.time(8999999999999999)
    assert.error_matches(function() return far + 1 end, "too many seconds: the year cannot be written")
    assert.error_matches(function()
      return kube.time(-8999999999999999) - 1
    end, "too many seconds: the year cannot be written")
    assert.equal(17999999999999998, far - kube.time(-8999999999999999))
  end)
end)
