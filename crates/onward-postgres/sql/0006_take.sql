-- Handing out.

-- Leases messages of one inlet from its ready ones. Nothing is looked at but what is taken.
create function onward.take_ready(p_inlet onward.inlet, p_want int, p_room bigint, p_first boolean, p_nonce uuid,
  p_request uuid, p_process text, p_worker text, p_until bigint, p_now bigint, p_accepts text[],
  out seqs bigint[], out bytes bigint) language plpgsql set enable_seqscan = off set enable_bitmapscan = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
  set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  if p_accepts = '{}' or p_inlet.kinds <@ p_accepts then
    with picked as materialized (
      select r.ctid as place, r.seq, r.vt, r.size from onward.ready r where r.inlet = p_inlet.id
      order by r.inlet, r.vt, r.seq limit p_want for update skip locked),
    fit as materialized (
      select place from (select place, row_number() over w as nth, sum(size) over w as run from picked
        window w as (order by vt, seq)) f where run <= p_room or (nth = 1 and p_first)),
    gone as (delete from onward.ready r using fit where r.ctid = fit.place returning r.*),
    held as (insert into onward.leased (seq, inlet, nonce, attempt, process, worker, request, since, until, size, marks)
      select g.seq, g.inlet, p_nonce, 1 + case when g.marks & 1 = 0 then 0
        else coalesce((select p.attempts from onward.past p where p.seq = g.seq), 0) end,
        p_process, p_worker, p_request, p_now, p_until, g.size, g.marks from gone g)
    select array_agg(g.seq order by g.vt, g.seq), sum(g.size) into seqs, bytes from gone g;
  else
    with picked as materialized (
      select c.* from unnest(p_accepts) a(kind) cross join lateral (
        select r.ctid as place, r.seq, r.vt, r.size from onward.ready r where r.inlet = p_inlet.id and r.kind = a.kind
        order by r.inlet, r.kind, r.vt, r.seq limit p_want for update skip locked) c
      order by c.vt, c.seq limit p_want),
    fit as materialized (
      select place from (select place, row_number() over w as nth, sum(size) over w as run from picked
        window w as (order by vt, seq)) f where run <= p_room or (nth = 1 and p_first)),
    gone as (delete from onward.ready r using fit where r.ctid = fit.place returning r.*),
    held as (insert into onward.leased (seq, inlet, nonce, attempt, process, worker, request, since, until, size, marks)
      select g.seq, g.inlet, p_nonce, 1 + case when g.marks & 1 = 0 then 0
        else coalesce((select p.attempts from onward.past p where p.seq = g.seq), 0) end,
        p_process, p_worker, p_request, p_now, p_until, g.size, g.marks from gone g)
    select array_agg(g.seq order by g.vt, g.seq), sum(g.size) into seqs, bytes from gone g;
  end if;
end $$;

-- The same by turns of the fairness keys, and within the rates of each. The caller holds the gate.
create function onward.take_fairly(p_inlet onward.inlet, p_want int, p_room bigint, p_first boolean, p_nonce uuid,
  p_request uuid, p_process text, p_worker text, p_until bigint, p_now bigint, p_accepts text[],
  out seqs bigint[], out bytes bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_rate jsonb := p_inlet.config->'rate_per_key'; v_limited boolean := jsonb_typeof(v_rate) = 'object';
  v_burst double precision := (v_rate->>'burst')::double precision;
  v_speed double precision := (v_rate->>'count')::double precision / ((v_rate->>'per_ms')::double precision * 1000);
  v_keys text[]; v_turns bigint[]; v_tokens double precision[]; v_best record; v_turn bigint;
begin
  bytes := 0;
  v_turn := coalesce((select max(served) from onward.flow where inlet = p_inlet.id), 0);
  -- The keys whose turn is next, locked in one order for everybody.
  select array_agg(k.fkey), array_agg(k.served), array_agg(k.tokens) into v_keys, v_turns, v_tokens from (
    select f.fkey, f.served, case when v_limited and f.fkey <> '' then
      least(coalesce(f.tokens + (p_now - f.tokens_at) * v_speed, v_burst), v_burst) end as tokens
    from onward.flow f where f.inlet = p_inlet.id and f.fkey in (
      select n.fkey from onward.flow n where n.inlet = p_inlet.id and not n.idle order by n.inlet, n.served limit 64)
    order by f.fkey for update) k;
  while coalesce(cardinality(seqs), 0) < p_want loop
    select t.n, r.* into v_best from unnest(v_keys, v_turns, v_tokens) with ordinality as t(fkey, served, tokens, n)
      cross join lateral (
        select h.vt, h.seq, h.size, h.marks from onward.ready h where h.inlet = p_inlet.id and h.fkey = t.fkey
          and (p_accepts = '{}' or h.kind = any (p_accepts)) order by h.inlet, h.fkey, h.vt, h.seq limit 1) r
      where t.tokens is null or t.tokens >= 1
      order by (p_now - r.vt) / p_inlet.ageing desc, t.served, r.seq limit 1;
    exit when not found;
    exit when bytes + v_best.size > p_room and (seqs is not null or not p_first);
    delete from onward.ready r where r.inlet = p_inlet.id and r.vt = v_best.vt and r.seq = v_best.seq;
    exit when not found;
    insert into onward.leased (seq, inlet, nonce, attempt, process, worker, request, since, until, size, marks)
      values (v_best.seq, p_inlet.id, p_nonce,
        1 + coalesce((select p.attempts from onward.past p where p.seq = v_best.seq), 0),
        p_process, p_worker, p_request, p_now, p_until, v_best.size, v_best.marks);
    seqs := coalesce(seqs, '{}') || v_best.seq;
    bytes := bytes + v_best.size;
    v_turn := v_turn + 1;
    v_turns[v_best.n] := v_turn;
    v_tokens[v_best.n] := v_tokens[v_best.n] - 1;
  end loop;
  update onward.flow f set served = t.served, tokens = t.tokens, tokens_at = case when v_limited then p_now end,
      idle = not exists (select 1 from onward.ready r where r.inlet = p_inlet.id and r.fkey = f.fkey)
    from unnest(v_keys, v_turns, v_tokens) as t(fkey, served, tokens) where f.inlet = p_inlet.id and f.fkey = t.fkey;
end $$;

-- A suspect, alone: leased when this process holds nothing. When it holds something, the oldest unclaimed suspect is
-- claimed for it, and it gets nothing more until it is free. `busy` says so.
create function onward.take_suspect(p_inlet onward.inlet, p_free boolean, p_nonce uuid, p_request uuid, p_process text,
  p_worker text, p_until bigint, p_now bigint, p_accepts text[], out seqs bigint[], out busy boolean) language plpgsql as $$
declare v_one onward.suspect;
begin
  busy := false;
  select * into v_one from onward.suspect s where s.inlet = p_inlet.id
    and (p_accepts = '{}' or s.kind = any (p_accepts))
    and (s.claimed_by is null or s.claimed_by = p_process or s.claimed_until <= p_now)
    order by s.vt, s.seq limit 1 for update skip locked;
  if not found then return; end if;
  if not p_free then
    update onward.suspect set claimed_by = p_process, claimed_until = p_now + p_inlet.lease where seq = v_one.seq;
    busy := true;
    return;
  end if;
  delete from onward.suspect where seq = v_one.seq;
  insert into onward.leased (seq, inlet, nonce, attempt, process, worker, request, since, until, size, marks)
    values (v_one.seq, p_inlet.id, p_nonce, 1 + coalesce((select p.attempts from onward.past p where p.seq = v_one.seq), 0),
      p_process, p_worker, p_request, p_now, p_until, v_one.size, v_one.marks);
  seqs := array[v_one.seq];
end $$;

-- How many an inlet may hand out now, and whether it goes by turns. Takes the gate where one must be alone.
create function onward.allowance(p_inlet onward.inlet, p_want int, p_now bigint, out want int, out fairly boolean)
language plpgsql as $$
declare v_gate onward.gate; v_rate jsonb := p_inlet.config->'rate'; v_tokens double precision;
begin
  want := p_want;
  fairly := p_inlet.fair;
  if p_inlet.paused or onward.dead_full(p_inlet) then want := 0; return; end if;
  if not fairly and p_inlet.slots_max is null and jsonb_typeof(v_rate) <> 'object' then return; end if;
  select * into v_gate from onward.gate where inlet = p_inlet.id and side = 0 for update;
  if p_inlet.slots_max is not null then
    want := least(want, p_inlet.slots_max - (select count(*) from onward.leased where inlet = p_inlet.id));
  end if;
  if jsonb_typeof(v_rate) = 'object' then
    v_tokens := least((v_rate->>'burst')::double precision, coalesce(v_gate.tokens + (p_now - v_gate.tokens_at)
      ::double precision * (v_rate->>'count')::numeric / ((v_rate->>'per_ms')::numeric * 1000), (v_rate->>'burst')::double precision));
    update onward.gate set tokens = v_tokens, tokens_at = p_now where inlet = p_inlet.id and side = 0;
    want := least(want, floor(v_tokens)::int);
  end if;
  want := greatest(want, 0);
end $$;

-- Whether so many dead letters lie there that nothing is handed out. Large bounds go by the last folding of the books.
create function onward.dead_full(p_inlet onward.inlet) returns boolean language sql stable as $$
  select case when p_inlet.dead_max <= 1000 then
    (select count(*) from (select 1 from onward.dead where inlet = p_inlet.id limit p_inlet.dead_max) d) >= p_inlet.dead_max
    else p_inlet.est_dead >= p_inlet.dead_max end
$$;
