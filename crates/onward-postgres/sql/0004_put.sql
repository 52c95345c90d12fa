-- Accepting messages.

-- The queue of that name, declared with these rules when it is not there.
create function onward.inlet_of(p_name text, p_config jsonb, out found_inlet onward.inlet, out declared boolean)
language plpgsql as $$
begin
  select * into found_inlet from onward.inlet where name = p_name;
  declared := not found;
  if declared then
    if p_config is null then
      raise exception '% does not exist', p_name using errcode = 'OW001';
    end if;
    insert into onward.inlet (name, config) values (p_name, p_config) on conflict (name) do nothing;
    declared := found;
    select * into found_inlet from onward.inlet where name = p_name;
    insert into onward.tally (inlet) values (found_inlet.id) on conflict do nothing;
    insert into onward.gate (inlet, side) values (found_inlet.id, 0), (found_inlet.id, 1) on conflict do nothing;
  end if;
end $$;

-- How many unfinished messages there are, and their bytes, as everybody sees it who holds the gate.
create function onward.depth(p_inlet int, out depth bigint, out bytes bigint) language sql stable as $$
  with books as (
    select accepted - done - expired - cancelled - purged - shed - dead as depth, bytes
      from onward.tally where inlet = p_inlet
    union all
    select accepted - done - expired - cancelled - purged - shed - dead, bytes from onward.delta where inlet = p_inlet)
  select coalesce(sum(depth), 0)::bigint, coalesce(sum(bytes), 0)::bigint from books
$$;

-- Drops the oldest waiting message of the lowest priority under `p_priority`; its bytes, or null when there is none.
create function onward.shed_one(p_inlet onward.inlet, p_priority smallint, p_now bigint) returns int language plpgsql as $$
declare v_message onward.message; v_marks smallint;
begin
  select m.* into v_message from onward.message m
    where m.priority < p_priority and m.seq in (
      select seq from onward.ready where inlet = p_inlet.id
      union all select seq from onward.scheduled where inlet = p_inlet.id
      union all select seq from onward.behind where inlet = p_inlet.id
      union all select seq from onward.suspect where inlet = p_inlet.id)
    order by m.priority, m.seq limit 1;
  if not found then return null; end if;
  if p_inlet.ordering <> 0 and v_message.okey is not null then
    perform onward.lock_chain(p_inlet.id, v_message.okey);
  end if;
  v_marks := onward.pull(v_message.seq);
  if v_marks is null then return onward.shed_one(p_inlet, p_priority, p_now); end if;
  perform onward.finish(v_message, v_marks, 6, 0, p_now);
  insert into onward.delta (inlet, shed, bytes) values (p_inlet.id, 1, -v_message.size);
  return v_message.size;
end $$;

-- Puts messages into a queue, each for itself unless `p_all`. Answers only what is to be told: status 1 duplicate,
-- 2 other content under the same identity, 3 full, 4 too large, 9 the queue was declared.
create function onward.put(p_queue text, p_config jsonb, p_all boolean, p_id text[], p_kind text[], p_version bigint[],
  p_made bigint[], p_source text[], p_correlation text[], p_causation text[], p_headers bytea[], p_data bytea[],
  p_type text[], p_okey text[], p_dkey text[], p_fkey text[], p_ukey text[], p_priority smallint[], p_due bigint[],
  p_delay bigint[], p_expiry bigint[], p_life bigint[], p_edition bigint[], p_size int[], p_plain boolean, p_keyed boolean)
returns table (n int, status int, id text) language plpgsql set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
  v_now bigint := onward.now_us(); v_found record; v_inlet onward.inlet; v_bounded boolean;
  v_count int := cardinality(p_id); v_new int; v_bytes bigint; v_seqs bigint[]; v_slow int[];
begin
  select * into v_found from onward.inlet_of(p_queue, p_config);
  v_inlet := v_found.found_inlet;
  if v_found.declared then n := 0; status := 9; id := null; return next; end if;
  v_bounded := v_inlet.depth_max < 100000 or v_inlet.bytes_max < 1073741824
    or v_inlet.est_depth > v_inlet.depth_max / 10 * 9 or v_inlet.est_bytes > v_inlet.bytes_max / 10 * 9;
  if p_plain and not (p_keyed and v_inlet.ordering <> 0) and not v_bounded and v_inlet.payload_max >= all (p_size) then
    with t as materialized (
      select nextval('onward.message_seq') as seq, u.* from unnest(p_id, p_kind, p_version, p_made, p_source,
        p_correlation, p_causation, p_headers, p_data, p_type, p_okey, p_dkey, p_priority, p_due, p_delay, p_expiry, p_life,
        p_edition, p_size)
        as u(id, kind, version, made, source, correlation, causation, headers, data, ctype, okey, dkey, priority, due,
          delay, expiry, life, edition, size)),
    new as (
      insert into onward.message (seq, inlet, id, kind, version, made, source, correlation, causation, headers, data,
        content_type, okey, dkey, priority, due, expiry, edition, size, accepted, vt, due_at, expires_at)
      select t.seq, v_inlet.id, t.id, t.kind, t.version, t.made, t.source, t.correlation, t.causation, t.headers, t.data,
        t.ctype, t.okey, t.dkey, t.priority, t.due, t.expiry, t.edition, t.size, v_now,
        v_now - t.priority * v_inlet.ageing, v_now + t.delay, v_now + t.life from t
      on conflict (inlet, (coalesce(dkey, id)), (case when dkey is null then source else '' end)) do nothing
      returning seq, vt, kind, size, due_at, expires_at),
    now_ready as (
      insert into onward.ready (inlet, vt, seq, kind, fkey, expires_at, size, marks)
      select v_inlet.id, vt, seq, kind, case when v_inlet.fair then '' end, expires_at, size, 0 from new where due_at is null or due_at <= v_now),
    later as (
      insert into onward.scheduled (seq, inlet, due, vt, kind, expires_at, size, marks)
      select seq, v_inlet.id, due_at, vt, kind, expires_at, size, 0 from new where due_at > v_now)
    select count(*), coalesce(sum(size), 0), array_agg(seq) into v_new, v_bytes, v_seqs from new;
    insert into onward.delta (inlet, accepted, bytes) values (v_inlet.id, v_new, v_bytes);
    if v_inlet.fair then
      insert into onward.flow (inlet, fkey, served, idle) values (v_inlet.id, '', 0, false)
        on conflict (inlet, fkey) do update set idle = false;
    end if;
    if v_new < v_count then
      -- What was not put in now is a repeat: of one before, or of one of this very call.
      select array_agg(u.n::int) into v_slow from unnest(p_id, p_dkey, p_source) with ordinality as u(id, dkey, source, n)
      where not exists (
        select 1 from onward.message m where m.inlet = v_inlet.id and coalesce(m.dkey, m.id) = coalesce(u.dkey, u.id)
          and (case when m.dkey is null then m.source else '' end) = (case when u.dkey is null then u.source else '' end)
          and m.seq = any (v_seqs))
      or exists (select 1 from unnest(p_id, p_dkey, p_source) with ordinality as e(id, dkey, source, n)
        where e.n < u.n and coalesce(e.dkey, e.id) = coalesce(u.dkey, u.id)
          and (case when e.dkey is null then e.source else '' end) = (case when u.dkey is null then u.source else '' end));
    end if;
  else
    v_slow := array(select generate_series(1, v_count));
  end if;
  if v_slow is not null then
    return query select * from onward.put_slowly(v_inlet, v_bounded, v_now, v_slow, p_id, p_kind, p_version, p_made,
      p_source, p_correlation, p_causation, p_headers, p_data, p_type, p_okey, p_dkey, p_fkey, p_ukey, p_priority, p_due,
      p_delay, p_expiry, p_life, p_edition, p_size, p_all);
  end if;
  if v_inlet.kinds is not null and not p_kind <@ v_inlet.kinds then
    update onward.inlet i set kinds = (select case when count(*) <= 64 then array_agg(k) end
      from (select distinct unnest(i.kinds || p_kind) as k) all_kinds) where i.id = v_inlet.id and i.kinds is not null;
  end if;
  perform onward.tell(v_inlet.id, v_now);
end $$;
