-- Ending attempts. Kinds: 0 ack, 1 retry, 2 release, 3 reject. States: as in `done`, and 0 waiting, 1 delayed, 3 dead.

-- Settles leases, each for itself unless `p_all`. Answers what is not simply `done`: status 0 and the state, 1 it was
-- settled so before, 5 the lease is lost, 6 it was settled otherwise.
create function onward.settle(p_all boolean, p_seq bigint[], p_nonce uuid[], p_kind smallint[], p_delay bigint[],
  p_failure jsonb[], p_result bytea[], p_result_type text[], p_print bigint[], p_acks boolean)
returns table (n int, status int, state smallint, due bigint) language plpgsql set enable_seqscan = off
  set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare v_now bigint := onward.now_us(); v_count int := cardinality(p_seq); v_done int[]; v_i int; v_row record;
begin
  if p_acks then
    -- Plain acknowledgements of messages without keys: all at once.
    with u as materialized (
      select * from unnest(p_seq, p_nonce, p_print, p_result, p_result_type) with ordinality
        as u(seq, nonce, print, result, rtype, n)),
    gone as (
      delete from onward.leased l using u where l.seq = u.seq and l.nonce = u.nonce and l.until > v_now
        and l.marks & 6 = 0 returning l.inlet, l.seq, l.size, l.attempt, u.n, u.nonce, u.print, u.result, u.rtype),
    kept as (insert into onward.done (seq, inlet, state, ended, attempt, nonce, print, result, result_type)
      select seq, inlet, 4, v_now, attempt, nonce, print, result, rtype from gone),
    books as (insert into onward.delta (inlet, done, bytes) select inlet, count(*), -sum(size) from gone group by inlet)
    select array_agg(n::int) into v_done from gone;
    if cardinality(v_done) = v_count then return; end if;
  end if;
  perform 1 from onward.chain c where (c.inlet, c.okey) in (
      select m.inlet, m.okey from onward.message m join onward.leased l on l.seq = m.seq
      where m.seq = any (p_seq) and l.marks & 2 <> 0)
    order by c.inlet, c.okey for update;
  for v_i in 1..v_count loop
    continue when v_i = any (v_done);
    select * into v_row from onward.settle_one(p_seq[v_i], p_nonce[v_i], p_kind[v_i], p_delay[v_i], p_failure[v_i],
      p_result[v_i], p_result_type[v_i], p_print[v_i], v_now);
    continue when v_row.status = 0 and v_row.state = 4;
    n := v_i; status := v_row.status; state := v_row.state; due := v_row.due;
    if p_all and status = 5 then
      raise exception 'the lease has ended' using errcode = 'OW005', detail = n::text;
    elsif p_all and status = 6 then
      raise exception 'the lease was settled otherwise' using errcode = 'OW002', detail = n::text;
    end if;
    return next;
  end loop;
end $$;

create function onward.settle_one(p_seq bigint, p_nonce uuid, p_kind smallint, p_delay bigint, p_failure jsonb,
  p_result bytea, p_result_type text, p_print bigint, p_now bigint, out status int, out state smallint, out due bigint)
language plpgsql as $$
#variable_conflict use_column
declare v_lease onward.leased; v_inlet onward.inlet; v_message onward.message; v_killed record;
begin
  delete from onward.leased l where l.seq = p_seq and l.nonce = p_nonce and l.until > p_now returning l.* into v_lease;
  if not found then
    select s.status, s.state, s.due into status, state, due
      from onward.settled_before(p_seq, p_nonce, p_kind, p_print, p_now) s;
    return;
  end if;
  status := 0;
  select i.* into v_inlet from onward.inlet i where i.id = v_lease.inlet;
  select m.* into v_message from onward.message m where m.seq = p_seq;
  if p_kind = 0 then
    perform onward.finish(v_message, v_lease.marks, 4, v_lease.attempt, p_now, p_nonce, p_print, p_result, p_result_type);
    insert into onward.delta (inlet, done, bytes) values (v_inlet.id, 1, -v_message.size);
    state := 4;
    return;
  end if;
  if p_kind = 2 and v_lease.marks & 16 <> 0 then
    perform onward.finish(v_message, v_lease.marks, 6, v_lease.attempt - 1, p_now);
    insert into onward.delta (inlet, cancelled, bytes) values (v_inlet.id, 1, -v_message.size);
    state := 6;
  elsif p_kind = 2 then
    if p_delay > 0 then due := p_now + p_delay; end if;
    perform onward.here(p_seq, due, v_lease.marks, p_now);
    state := case when p_delay > 0 then 1 else 0 end;
    perform onward.tell(v_inlet.id, p_now);
  else
    perform onward.add_cause(p_seq, p_failure || jsonb_build_object('attempt', v_lease.attempt, 'at', p_now,
      'worker', v_lease.worker), v_inlet.causes_max, v_lease.attempt, 0);
    if p_kind = 1 then
      select a.state, a.due into state, due from onward.again_or_dead(v_inlet, v_message, v_lease,
        case when p_delay is not null then greatest(p_delay,
          greatest((v_inlet.config->'retry'->>'delay_min_ms')::numeric, 1) * 1000)::bigint end, p_now) a;
    else
      v_killed := onward.kill(v_inlet, v_message, v_lease.marks, p_now);
      insert into onward.delta (inlet, failures, dead, bytes) values (v_inlet.id, 1, v_killed.died, -v_killed.bytes);
      state := 3;
    end if;
  end if;
  insert into onward.settled (nonce, seq, print, state, due, at) values (p_nonce, p_seq, p_print, state, due, p_now);
end $$;

-- The lease is not there: it was settled before, so or otherwise, or it ended.
create function onward.settled_before(p_seq bigint, p_nonce uuid, p_kind smallint, p_print bigint, p_now bigint,
  out status int, out state smallint, out due bigint) language plpgsql as $$
#variable_conflict use_column
declare v_settled onward.settled; v_done onward.done;
begin
  select s.* into v_settled from onward.settled s where s.nonce = p_nonce and s.seq = p_seq;
  if found then
    status := case when v_settled.print = p_print then 1 else 6 end;
    state := v_settled.state; due := v_settled.due;
    return;
  end if;
  select d.* into v_done from onward.done d where d.seq = p_seq and d.nonce = p_nonce;
  if not found then
    status := 5;
  elsif v_done.print is null then
    -- At most once: it was done when it was handed out; this only counts.
    insert into onward.settled (nonce, seq, print, state, at) values (p_nonce, p_seq, p_print, 4, p_now)
      on conflict do nothing;
    if found and p_kind <> 0 then insert into onward.delta (inlet, lost) values (v_done.inlet, 1); end if;
    status := 0; state := 4;
  else
    status := case when v_done.print = p_print then 1 else 6 end;
    state := v_done.state;
  end if;
end $$;

-- Extends leases: status 0 and whether cancelling was asked for, 4 beyond the bound of the whole attempt; those that
-- are not told are lost.
create function onward.extend(p_seq bigint[], p_nonce uuid[], p_by bigint)
returns table (n int, status int, cancel boolean) language sql set enable_seqscan = off set enable_hashjoin = off
  set enable_mergejoin = off set enable_bitmapscan = off as $$
  with moment as materialized (select onward.now_us() as now),
  u as materialized (select * from unnest(p_seq, p_nonce) with ordinality as u(seq, nonce, n)),
  extended as (
    update onward.leased l set until = moment.now + p_by from u, moment, onward.inlet i
    where l.seq = u.seq and l.nonce = u.nonce and l.until > moment.now and i.id = l.inlet
      and (i.lease_total is null or moment.now + p_by <= l.since + i.lease_total)
    returning u.n, l.marks & 16 <> 0 as cancel)
  select n::int, 0, cancel from extended
  union all
  select u.n::int, 4, false from u cross join moment join onward.leased l on l.seq = u.seq and l.nonce = u.nonce
    join onward.inlet i on i.id = l.inlet
    where l.until > moment.now and i.lease_total is not null and moment.now + p_by > l.since + i.lease_total
$$;
