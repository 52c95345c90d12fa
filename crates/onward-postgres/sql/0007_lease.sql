-- One request for deliveries over several inlets; and what a delivery is made of.

create type onward.delivery as (
  inlet text, seq bigint, nonce uuid, attempt bigint, term bigint, accepted bigint, suspect boolean,
  id text, kind text, version bigint, made bigint, source text, correlation text, causation text, headers bytea,
  data bytea, content_type text, okey text, dkey text, fkey text, ukey text, priority smallint, due bigint, expiry bigint,
  edition bigint, causes text, progress bytea, progress_type text
);

create function onward.deliveries(p_seqs bigint[], p_nonce uuid, p_lease bigint, p_now bigint)
returns setof onward.delivery language sql stable set enable_seqscan = off set enable_hashjoin = off
  set enable_mergejoin = off set enable_bitmapscan = off as $$
  select i.name, m.seq, coalesce(l.nonce, p_nonce), coalesce(l.attempt, d.attempt), coalesce(l.until - p_now, p_lease),
    m.accepted, coalesce(l.marks & 8 <> 0, false), m.id, m.kind, m.version, m.made, m.source, m.correlation, m.causation,
    m.headers, m.data, m.content_type, m.okey, m.dkey, m.fkey, m.ukey, m.priority, m.due, m.expiry, m.edition,
    p.causes::text, p.progress, p.progress_type
  from unnest(p_seqs) with ordinality u(seq, n)
  join onward.message m on m.seq = u.seq
  join onward.inlet i on i.id = m.inlet
  left join onward.leased l on l.seq = u.seq
  left join onward.past p on p.seq = u.seq and (l.marks is null or l.marks & 1 <> 0)
  left join onward.done d on d.seq = u.seq and l.seq is null
  order by u.n
$$;

create function onward.lease(p_request uuid, p_process text, p_worker text, p_names text[], p_quotas int[], p_config jsonb,
  p_count int, p_bytes bigint, p_lease bigint, p_accepts text[])
returns setof onward.delivery language plpgsql set enable_seqscan = off set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan as $$
declare
  v_now bigint := onward.now_us(); v_nonce uuid := gen_random_uuid(); v_seqs bigint[]; v_inlets onward.inlet[];
  v_inlet onward.inlet; v_taken record; v_free boolean; v_term bigint; v_room bigint := p_bytes; v_want int;
begin
  select array_agg(l.seq order by m.vt, l.seq) into v_seqs from onward.leased l join onward.message m on m.seq = l.seq
    where l.process = p_process and l.request = p_request and l.until > v_now;
  if v_seqs is not null then
    return query select * from onward.deliveries(v_seqs, null, null, v_now);
    return;
  end if;
  for v_i in 1..cardinality(p_names) loop
    select * into v_taken from onward.inlet_of(p_names[v_i], p_config);
    v_inlet := v_taken.found_inlet;
    perform onward.tick(v_inlet, v_now);
    v_inlets := array_append(v_inlets, v_inlet);
  end loop;
  if exists (select 1 from onward.leased where process = p_process and marks & 8 <> 0 and until > v_now) then return; end if;
  v_seqs := '{}';
  foreach v_inlet in array v_inlets loop
    continue when not exists (select 1 from onward.suspect s where s.inlet = v_inlet.id);
    v_free := not exists (select 1 from onward.leased where process = p_process and until > v_now);
    continue when v_free and (onward.allowance(v_inlet, 1, v_now)).want = 0;
    select * into v_taken from onward.take_suspect(v_inlet, v_free, v_nonce, p_request, p_process, p_worker,
      v_now + coalesce(p_lease, v_inlet.lease), v_now, p_accepts);
    if v_taken.busy then return; end if;
    if v_taken.seqs is not null then
      perform onward.handed_out(v_inlet, v_taken.seqs, v_nonce, v_now);
      return query select * from onward.deliveries(v_taken.seqs, v_nonce, coalesce(p_lease, v_inlet.lease), v_now);
      return;
    end if;
  end loop;
  for v_pass in 1..2 loop
    for v_i in 1..cardinality(p_names) loop
      v_inlet := v_inlets[v_i];
      v_want := least(p_count - cardinality(v_seqs), case v_pass when 1 then p_quotas[v_i] else p_count end);
      continue when v_want <= 0 or v_pass = 2 and cardinality(p_names) = 1;
      select * into v_taken from onward.allowance(v_inlet, v_want, v_now);
      continue when v_taken.want = 0;
      v_term := v_now + coalesce(p_lease, v_inlet.lease);
      if v_taken.fairly then
        select * into v_taken from onward.take_fairly(v_inlet, v_taken.want, v_room, v_seqs = '{}', v_nonce, p_request,
          p_process, p_worker, v_term, v_now, p_accepts);
      else
        select * into v_taken from onward.take_ready(v_inlet, v_taken.want, v_room, v_seqs = '{}', v_nonce, p_request,
          p_process, p_worker, v_term, v_now, p_accepts);
      end if;
      continue when v_taken.seqs is null;
      v_seqs := v_seqs || v_taken.seqs;
      v_room := v_room - v_taken.bytes;
      perform onward.handed_out(v_inlet, v_taken.seqs, v_nonce, v_now);
    end loop;
  end loop;
  if v_seqs <> '{}' then
    return query select * from onward.deliveries(v_seqs, v_nonce, coalesce(p_lease, v_inlet.lease), v_now);
  end if;
end $$;

-- Counts hand-outs, spends the rate; at most once, the messages are done with it.
create function onward.handed_out(p_inlet onward.inlet, p_seqs bigint[], p_nonce uuid, p_now bigint) returns void
language plpgsql as $$
declare v_lease onward.leased; v_message onward.message; v_bytes bigint := 0;
begin
  if jsonb_typeof(p_inlet.config->'rate') = 'object' then
    update onward.gate set tokens = tokens - cardinality(p_seqs) where inlet = p_inlet.id and side = 0;
  end if;
  if not p_inlet.once then
    insert into onward.delta (inlet, deliveries) values (p_inlet.id, cardinality(p_seqs));
    return;
  end if;
  for v_lease in delete from onward.leased where seq = any (p_seqs) returning * loop
    select * into v_message from onward.message where seq = v_lease.seq;
    if v_lease.marks & 2 <> 0 then perform onward.lock_chain(p_inlet.id, v_message.okey); end if;
    perform onward.finish(v_message, v_lease.marks, 4, v_lease.attempt, p_now, p_nonce);
    v_bytes := v_bytes + v_lease.size;
  end loop;
  insert into onward.delta (inlet, deliveries, done, bytes)
    values (p_inlet.id, cardinality(p_seqs), cardinality(p_seqs), -v_bytes);
end $$;
