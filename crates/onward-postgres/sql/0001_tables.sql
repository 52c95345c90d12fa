-- Every table of an instance. `onward.` stands for the instance's own schema.
-- Times are microseconds since 1970 by the server's clock; spans are microseconds.

-- The one clock of the instance.
create function onward.now_us() returns bigint language sql volatile parallel safe as $$
  select (extract(epoch from clock_timestamp()) * 1000000)::bigint
$$;

-- Milliseconds of a configuration as microseconds, within what a bigint holds.
create function onward.us(p_ms jsonb) returns bigint language sql immutable parallel safe as $$
  select case when p_ms is null or p_ms = 'null' then null
    else least((p_ms #>> '{}')::numeric * 1000, 4000000000000000000)::bigint end
$$;

create function onward.big(p_number jsonb) returns bigint language sql immutable parallel safe as $$
  select case when p_number is null or p_number = 'null' then null
    else least((p_number #>> '{}')::numeric, 4000000000000000000)::bigint end
$$;

create sequence onward.message_seq;
create sequence onward.revision_seq;

-- Queues: their rules as they were declared, and what the functions read of them.
create table onward.inlet (
  id int generated always as identity primary key,
  name text collate "C" not null unique,
  config jsonb not null,
  paused boolean not null default false,
  -- Every type that was ever put in; null once they are too many to list.
  kinds text[] default '{}',
  fair boolean not null default false,
  -- What the last folding of the books found; exact counts are taken near a bound.
  est_depth bigint not null default 0,
  est_bytes bigint not null default 0,
  est_dead bigint not null default 0,
  lease bigint not null generated always as (onward.us(config->'lease_ms')) stored,
  lease_total bigint generated always as (onward.us(config->'lease_total_max_ms')) stored,
  attempts_max bigint not null generated always as (onward.big(config->'retry'->'attempts_max')) stored,
  crashes_max bigint not null generated always as (onward.big(config->'crashes_max')) stored,
  causes_max bigint not null generated always as (onward.big(config->'causes_max')) stored,
  -- 0 unordered, 1 by key and a dead head blocks, 2 by key and followers are set aside.
  ordering smallint not null generated always as (case
    when config->'order' = '"unordered"' then 0
    when config->'order'->'by_key'->>'stuck_head' = 'wait' then 1 else 2 end) stored,
  ageing bigint not null generated always as (greatest(onward.us(config->'ageing_ms'), 1)) stored,
  dedup_window bigint not null generated always as (onward.us(config->'dedup_window_ms')) stored,
  dedup_max bigint not null generated always as (onward.big(config->'dedup_entries_max')) stored,
  payload_max bigint not null generated always as (onward.big(config->'payload_bytes_max')) stored,
  depth_max bigint not null generated always as (onward.big(config->'depth_max')) stored,
  bytes_max bigint not null generated always as (onward.big(config->'bytes_max')) stored,
  sheds boolean not null generated always as (config->>'overflow' = 'shed_lowest') stored,
  dead_max bigint not null generated always as (onward.big(config->'dead_max')) stored,
  dead_keep bigint generated always as (onward.us(config->'dead_retention_ms')) stored,
  slots_max bigint generated always as (onward.big(config->'concurrency_max')) stored,
  result_keep bigint not null generated always as (onward.us(config->'result_retention_ms')) stored,
  once boolean not null generated always as (config->>'guarantee' = 'at_most_once') stored
);

-- Messages, written once and never changed but by an edit; where a message is stands in the tables after this one.
create table onward.message (
  seq bigint primary key,
  inlet int not null,
  id text collate "C" not null,
  kind text collate "C" not null,
  version bigint not null,
  made bigint not null,
  source text collate "C" not null,
  correlation text collate "C",
  causation text collate "C",
  headers bytea,
  data bytea not null,
  content_type text,
  okey text collate "C",
  dkey text collate "C",
  fkey text collate "C",
  ukey text collate "C",
  priority smallint not null,
  due bigint,
  expiry bigint,
  edition bigint not null,
  size int not null,
  accepted bigint not null,
  -- When it was accepted, earlier by the ageing span for each level of priority: a constant by which ranks compare.
  vt bigint not null,
  due_at bigint,
  expires_at bigint,
  original bytea
);
-- What deduplicates: its own key, or source and id.
create unique index message_identity on onward.message
  (inlet, (coalesce(dkey, id)), (case when dkey is null then source else '' end));
create index message_id_of_keyed on onward.message (inlet, id) where dkey is not null;
create index message_correlation on onward.message (inlet, correlation, seq) where correlation is not null;
create index message_order on onward.message (inlet, okey, seq) where okey is not null;

-- Bits of `marks`: 1 it has a past, 2 it is the head of its order key, 4 it has a unique key, 8 a suspect,
-- 16 somebody asked to cancel it.
create table onward.ready (
  inlet int not null, vt bigint not null, seq bigint not null, kind text collate "C" not null,
  fkey text collate "C", expires_at bigint, size int not null, marks smallint not null,
  primary key (inlet, vt, seq)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index ready_kind on onward.ready (inlet, kind, vt, seq);
create index ready_fair on onward.ready (inlet, fkey, vt, seq) where fkey is not null;
create index ready_expires on onward.ready (inlet, expires_at) where expires_at is not null;

-- Due later: new ones with a due time, and failed ones that wait.
create table onward.scheduled (
  seq bigint primary key, inlet int not null, due bigint not null, vt bigint not null,
  kind text collate "C" not null, fkey text collate "C", expires_at bigint, size int not null, marks smallint not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index scheduled_due on onward.scheduled (inlet, due);
create index scheduled_expires on onward.scheduled (inlet, expires_at) where expires_at is not null;

-- Behind another message of their order key.
create table onward.behind (
  seq bigint primary key, inlet int not null, okey text collate "C" not null, due bigint, expires_at bigint,
  size int not null, marks smallint not null
);
create index behind_key on onward.behind (inlet, okey, seq);
create index behind_due on onward.behind (inlet, due) where due is not null;
create index behind_expires on onward.behind (inlet, expires_at) where expires_at is not null;

-- In flight when their process died: handed out alone.
create table onward.suspect (
  seq bigint primary key, inlet int not null, vt bigint not null, kind text collate "C" not null,
  expires_at bigint, size int not null, marks smallint not null, claimed_by text, claimed_until bigint
);
create index suspect_next on onward.suspect (inlet, vt, seq);

create table onward.leased (
  seq bigint primary key, inlet int not null, nonce uuid not null, attempt bigint not null,
  process text not null, worker text not null, request uuid not null, since bigint not null, until bigint not null,
  size int not null, marks smallint not null
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
create index leased_until on onward.leased (inlet, until);
create index leased_process on onward.leased (process, request);
create index leased_suspect on onward.leased (process) where marks & 8 <> 0;

create table onward.dead (
  seq bigint primary key, inlet int not null, died bigint not null, okey text collate "C"
);
create index dead_inlet on onward.dead (inlet, seq);
create index dead_died on onward.dead (inlet, died);
create index dead_key on onward.dead (inlet, okey, seq) where okey is not null;

-- Finished, for as long as the id or the result is remembered. `state`: 4 done, 5 expired, 6 cancelled.
create table onward.done (
  seq bigint primary key, inlet int not null, state smallint not null, ended bigint not null, attempt bigint not null,
  nonce uuid, print bigint, result bytea, result_type text
);
create index done_ended on onward.done using brin (ended);

-- What failed attempts and redrives left; only of messages that have a past.
create table onward.past (
  seq bigint primary key, attempts bigint not null default 0, crashes bigint not null default 0,
  causes jsonb not null default '[]', progress bytea, progress_type text
);

-- Order keys in use, and the message that is at their head; `aside`: dead letters of this key exist, others follow.
create table onward.chain (
  inlet int not null, okey text collate "C" not null, head bigint, aside boolean not null default false,
  locks int not null default 0, primary key (inlet, okey)
) with (fillfactor = 70);

create table onward.uniq (
  inlet int not null, ukey text collate "C" not null, seq bigint not null, primary key (inlet, ukey)
);

-- Fairness keys, by whose turn it is.
create table onward.flow (
  inlet int not null, fkey text collate "C" not null, served bigint not null, idle boolean not null,
  tokens double precision, tokens_at bigint, primary key (inlet, fkey)
) with (fillfactor = 70);
create index flow_turn on onward.flow (inlet, served) where not idle;

-- Locked by whoever must be alone at an inlet: side 0 hands out under limits, side 1 accepts near a bound.
create table onward.gate (
  inlet int not null, side smallint not null, tokens double precision, tokens_at bigint, primary key (inlet, side)
);

-- Settlements of attempts that did not finish their message, so that a repeat is told as one.
create table onward.settled (
  nonce uuid not null, seq bigint not null, print bigint not null, state smallint not null, due bigint, at bigint not null,
  primary key (nonce, seq)
);
create index settled_at on onward.settled using brin (at);

-- The books: a row per inlet, and what has happened since it was written.
create table onward.tally (
  inlet int primary key, accepted bigint not null default 0, done bigint not null default 0,
  expired bigint not null default 0, cancelled bigint not null default 0, purged bigint not null default 0,
  shed bigint not null default 0, deliveries bigint not null default 0, failures bigint not null default 0,
  duplicates bigint not null default 0, lost bigint not null default 0, bytes bigint not null default 0,
  dead bigint not null default 0
);
create table onward.delta (
  inlet int not null, accepted int not null default 0, done int not null default 0, expired int not null default 0,
  cancelled int not null default 0, purged int not null default 0, shed int not null default 0,
  deliveries int not null default 0, failures int not null default 0, duplicates int not null default 0,
  lost int not null default 0, bytes bigint not null default 0, dead int not null default 0
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

create table onward.bulk (
  id uuid primary key, matched bigint not null, done bigint not null, finished boolean not null, at bigint not null
);

create table onward.record (
  key text collate "C" primary key, value bytea not null, revision bigint not null, expires bigint, written bigint not null
);
create index record_expires on onward.record (expires) where expires is not null;

-- Processes that wait for work of an inlet; who puts something in tells one of them.
create unlogged table onward.sleeper (
  inlet int not null, process text not null, until bigint not null, primary key (inlet, process)
);
