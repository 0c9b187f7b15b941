"""Throttle counters and misuse strikes in Valkey. The algorithm is GCRA: one number per limit (the theoretical arrival
time), a burst up to the limit, then a steady refill. Which limits apply is in the contract's documents; whose requests
they count is not: all of the subject's, under every contract."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1, sha256
from typing import Any

import structlog
from redis.exceptions import NoScriptError, RedisError

from governance.outside.valkey import valkey, valkey_command

log = structlog.get_logger("holdpoint.throttle")
PREFIX = "holdpoint:throttle:"
STRIKES = "holdpoint:strikes:"
CLAIMS = "holdpoint:claim:"
CLAIMED_MS = "5000"
# Counted over all organizations. How much is left of such a limit would tell what the others do: only whom it refuses
# is told that it is used up.
SHARED = frozenset({"region"})
# Seconds. Callers without Valkey are denied; without this they would all ask again at once.
UNAVAILABLE_RETRY_AFTER = 5

# One script, because all limits must be taken or none: a request that one limit refuses must not use up the others, and
# between a check and a later take another request could take the last one.
#
# A key belongs to a subject, not to a contract: each of its fields is one limit ("limit:window") that some contract
# sets for this subject, with the arrival time and when that limit was last asked for. A request is checked against the
# limits of its own contract and counts for all of the subject. A limit that is new begins with what the others have
# counted in its window: it must not let in as many again. One that nobody asked for in a day is forgotten.
#
# ARGV: limit and window (seconds) per key. With one key more than limits, the last argument is the time in ms for which
# that key is claimed. Returns {index of the limit that refuses or 0, wait in ms, remaining…}, or {-1} if the key was
# claimed before.
#
# TIME is Valkey's clock: the clocks of several web servers differ, and a counter must not.
# PX: an arrival time is at most one window ahead, so older counters count nothing. Without an end, the counters of
# every patient reference would stay in memory.
SCRIPT = """
local limits = math.floor(#ARGV / 2)
if #KEYS > limits and not redis.call('SET', KEYS[#KEYS], '1', 'NX', 'PX', ARGV[#ARGV]) then return {-1} end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local counters, remaining, refused, wait = {}, {}, 0, 0

local function read(key)
  local found, raw = {}, redis.call('HGETALL', key)
  for i = 1, #raw, 2 do
    local limit, window = string.match(raw[i], '(%d+):(%d+)')
    local arrival, asked = string.match(raw[i + 1], '(%d+) (%d+)')
    found[raw[i]] = {
      limit = tonumber(limit), window = tonumber(window) * 1000000,
      arrival = math.max(tonumber(arrival), now), asked = tonumber(asked)
    }
  end
  return found
end

for i = 1, limits do
  local key, limit, window = KEYS[i], tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i]) * 1000000
  if not counters[key] then counters[key] = read(key) end
  local interval, field = window / limit, ARGV[2 * i - 1] .. ':' .. ARGV[2 * i]
  local own = counters[key][field]
  if not own then
    local used = 0
    for _, other in pairs(counters[key]) do
      if other.window <= window and not other.new then
        used = math.max(used, math.ceil((other.arrival - now) * other.limit / other.window))
      end
    end
    own = {limit = limit, window = window, arrival = now + math.min(used, limit) * interval, new = true}
    counters[key][field] = own
  end
  own.asked = tonumber(time[1])
  local over = own.arrival + interval - window - now
  if over > 0 then
    if over > wait then refused = i; wait = over end
    remaining[i] = 0
  else
    remaining[i] = math.floor(-over / interval)
  end
end
if refused == 0 then
  for key, fields in pairs(counters) do
    local written, longest = {}, 0
    for field, one in pairs(fields) do
      if tonumber(time[1]) - one.asked > 86400 then
        redis.call('HDEL', key, field)
      else
        local arrival = math.min(one.arrival + one.window / one.limit, now + one.window)
        written[#written + 1] = field
        written[#written + 1] = string.format('%.0f %d', arrival, one.asked)
        longest = math.max(longest, one.window)
      end
    end
    redis.call('HSET', key, unpack(written))
    redis.call('PEXPIRE', key, math.ceil(longest / 1000) + 1000)
  end
end
local answer = {refused, math.ceil(wait / 1000)}
for i = 1, limits do answer[i + 2] = remaining[i] end
return answer
"""
SCRIPT_SHA = sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit as it applies to one request."""

    per: str
    subject: str
    limit: int
    window_seconds: int

    @property
    def key(self) -> str:
        # Hashed, so that no reference of a caller can be read in Valkey.
        hashed = sha256(f"{self.per}\0{self.subject}".encode()).hexdigest()[:32]
        return f"{PREFIX}{self.per}:{hashed}"

    @property
    def facts(self) -> dict[str, Any]:
        """Of the limit that refused: all of it is used."""
        return {"name": self.per, "limit": self.limit, "used": self.limit, "window_seconds": self.window_seconds}


@dataclass(frozen=True, slots=True)
class ThrottleAnswer:
    """The answer about all limits of a request: `facts` for the decision's environment, `headers` for the caller."""

    status: str
    exceeded: str | None
    retry_after: int
    remaining: tuple[tuple[Limit, int], ...] = ()
    refused: Limit | None = None

    @property
    def facts(self) -> dict[str, Any]:
        facts = {"status": self.status, "exceeded": self.exceeded, "retry_after": self.retry_after}
        # Only with a refusal: a decision that allows is stored by what it has in common with others.
        return facts | ({"cap": self.refused.facts} if self.refused else {})

    @property
    def headers(self) -> dict[str, str]:
        if not self.remaining:
            return {}
        policy = ", ".join(f'"{limit.per}";q={limit.limit};w={limit.window_seconds}' for limit, _ in self.remaining)
        own = [pair for pair in self.remaining if pair[0].per not in SHARED or pair[0] == self.refused]
        if not own:
            return {"RateLimit-Policy": policy}
        tightest, left = min(own, key=lambda pair: (pair[0] != self.refused, pair[1] / pair[0].limit, pair[1]))
        reset = self.retry_after or tightest.window_seconds
        return {"RateLimit-Policy": policy, "RateLimit": f'"{tightest.per}";r={left};t={reset}'}


def limits_for(document: Mapping[str, Any], *, scope: str, subjects: Mapping[str, Sequence[str]]) -> tuple[Limit, ...]:
    """The document's limits, once for each subject that this request has. `scope` separates the organizations: what one
    sends uses up no limit of another, except that of a region, which they share. Every contract's requests count."""
    return tuple(
        Limit(
            row["per"], subject if row["per"] in SHARED else f"{scope}\0{subject}", row["limit"], row["window_seconds"]
        )
        for row in document["limits"]
        for subject in subjects[row["per"]]
        if subject
    )


def throttle_take(*, limits: Sequence[Limit]) -> ThrottleAnswer:
    """Takes one from every limit, or from none if one refuses. Without Valkey the request is refused."""
    return (limits and _take(limits, None)) or ThrottleAnswer("ok", None, 0)


def throttle_take_once(*, limits: Sequence[Limit], claim: str) -> ThrottleAnswer | None:
    """The same, but None, with nothing taken, if another request made the same claim in the last seconds. Only a hint
    that a repetition may be on its way: it may come too often or be lost, and nothing else depends on it."""
    return _take(limits, f"{CLAIMS}{sha256(claim.encode()).hexdigest()[:32]}")


def _take(limits: Sequence[Limit], claim: str | None) -> ThrottleAnswer | None:
    keys = [limit.key for limit in limits]
    arguments = [str(value) for limit in limits for value in (limit.limit, limit.window_seconds)]
    if claim is not None:
        keys.append(claim)
        arguments.append(CLAIMED_MS)
    try:
        refused, *rest = _ask("EVALSHA", SCRIPT_SHA, str(len(keys)), *keys, *arguments)
    except RedisError as error:
        # Fail closed: allowing what cannot be counted would make an outage of Valkey a way around every limit.
        log.error("throttle_unavailable", exc_info=error)
        return ThrottleAnswer("unavailable", None, UNAVAILABLE_RETRY_AFTER)
    if refused < 0:
        return None
    wait_ms, *remaining = rest
    left = tuple(zip(limits, remaining, strict=True))
    if refused:
        # Rounded up to whole seconds, at least 1: rounded down, a caller that obeys would be refused again.
        limit = limits[refused - 1]
        return ThrottleAnswer("limited", limit.per, max(1, -(-wait_ms // 1000)), left, limit)
    return ThrottleAnswer("ok", None, 0, left)


def strike(*, subject: str, window_seconds: int) -> int | None:
    """Adds a strike and returns their number in the window, or None without Valkey. Each length of window that a
    contract approved is counted by itself: otherwise the contract of the first strike would set it for all."""
    key = f"{STRIKES}{subject}:{window_seconds}"
    try:
        # One transaction: a counter that lost its expiry between two commands would never be forgotten.
        pipeline = valkey().pipeline(transaction=True)
        pipeline.incr(key)
        # nx: the window begins with the first strike. Otherwise each strike would extend it.
        pipeline.expire(key, window_seconds, nx=True)
        return int(pipeline.execute()[0])
    except RedisError as error:
        # Not raised: the refusal that caused the strike is already committed, and its answer must reach the caller.
        log.error("strike_unavailable", exc_info=error)
        return None


def strikes_forget(*, subject: str) -> None:
    """Called after an operator has reinstated the account: otherwise its next strike would suspend it again."""
    try:
        if keys := list(valkey().scan_iter(f"{STRIKES}{subject}:*")):
            valkey().delete(*keys)
    except RedisError as error:
        log.error("strike_unavailable", exc_info=error)


def _ask(*words: str) -> Any:
    """Sends EVALSHA. The script's text is sent only when the server does not know it."""
    try:
        return valkey_command(*words)
    except NoScriptError:  # Valkey was restarted: it does not keep scripts
        valkey().script_load(SCRIPT)
        return valkey_command(*words)
