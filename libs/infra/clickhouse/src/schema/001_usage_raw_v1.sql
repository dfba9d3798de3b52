-- One row per usage event. The sort key is the request, so a request id counts once however often and in whatever batch
-- it arrives; of several rows a completed one stays before one that is not, then the one with the lowest stream sequence
-- (the engine keeps the highest precedence). A batch line that is run again after a crash has the same request id.
-- Queries say FINAL, since merging happens some time later. There is no partition by time: a request that is recorded
-- again with another start would then be counted in both.
CREATE TABLE IF NOT EXISTS usage_raw_v1
(
    organisation_id   LowCardinality(String),
    request_id        String,
    project_id        LowCardinality(String),
    key_id            LowCardinality(String),
    endpoint_id       LowCardinality(String),
    model_name        LowCardinality(String),
    model_version_id  LowCardinality(String),
    replica_id        Nullable(String),
    batch_id          Nullable(String),
    operation         LowCardinality(String),
    stream            Bool,
    status            LowCardinality(String),
    finish_reason     LowCardinality(Nullable(String)),
    http_status       Int32,
    error_code        LowCardinality(Nullable(String)),
    prompt_tokens     UInt64,
    cached_tokens     UInt64,
    completion_tokens UInt64,
    reasoning_tokens  UInt64,
    tokens_estimated  Bool,
    started_at        DateTime64(3, 'UTC'),
    queue_ms          Float64,
    ttft_ms           Nullable(Float64),
    duration_ms       Float64,
    engine_ms         Float64,
    sequence          UInt64,
    precedence        UInt64 DEFAULT if(status = 'completed', bitNot(sequence), bitNot(sequence) - 9223372036854775808)
)
ENGINE = ReplacingMergeTree(precedence)
ORDER BY (organisation_id, request_id)
SETTINGS non_replicated_deduplication_window = 1000
