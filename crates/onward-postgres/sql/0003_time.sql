-- What time alone brings about, made true whenever somebody looks.

-- The attempt of a lease ended without a word from its holder.
create function onward.lease_expired(p_inlet onward.inlet, p_lease onward.leased, p_now bigint) returns void
language plpgsql as $$
declare v_message onward.message; v_wait bigint;
begin
  select * into v_message from onward.message where seq = p_lease.seq;
  if p_lease.marks & 2 <> 0 then perform onward.lock_chain(p_inlet.id, v_message.okey); end if;
  perform onward.add_cause(p_lease.seq,
    onward.cause('lease_expired', 'no word from its holder', p_lease.attempt, p_now, p_lease.worker),
    p_inlet.causes_max, p_lease.attempt, 0);
  perform onward.again_or_dead(p_inlet, v_message, p_lease, null, p_now);
end $$;

-- After a failure: gone when its cancelling was asked for, dead when attempts are used up, or again after the wait
-- (null: as the retry policy says). Writes the books; returns the state and when it comes again.
create function onward.again_or_dead(p_inlet onward.inlet, p_message onward.message, p_lease onward.leased,
  p_wait bigint, p_now bigint, out state smallint, out due bigint) language plpgsql as $$
declare v_killed record;
begin
  if p_lease.marks & 16 <> 0 then
    perform onward.finish(p_message, p_lease.marks, 6, p_lease.attempt, p_now);
    insert into onward.delta (inlet, failures, cancelled, bytes) values (p_inlet.id, 1, 1, -p_message.size);
    state := 6;
  elsif p_lease.attempt >= p_inlet.attempts_max then
    v_killed := onward.kill(p_inlet, p_message, p_lease.marks, p_now);
    insert into onward.delta (inlet, failures, dead, bytes)
      values (p_inlet.id, 1, v_killed.died, -v_killed.bytes);
    state := 3;
  else
    due := p_now + coalesce(p_wait, onward.retry_wait(p_inlet.config->'retry', p_lease.attempt, random()));
    perform onward.here(p_message.seq, due, p_lease.marks | 1, p_now);
    insert into onward.delta (inlet, failures) values (p_inlet.id, 1);
    state := 1;
  end if;
end $$;

-- Ends leases, makes ready what is due, counts what expired; at most `p_most` of each. True when more is left.
create function onward.tick(p_inlet onward.inlet, p_now bigint, p_most int default 1000) returns boolean
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
  set enable_mergejoin = off set plan_cache_mode = force_generic_plan as $$
declare v_lease onward.leased; v_count int; v_more boolean := false;
begin
  v_count := 0;
  for v_lease in
    with ended as (select seq from onward.leased where inlet = p_inlet.id and until <= p_now
      order by inlet, until limit p_most for update skip locked)
    delete from onward.leased l using ended where l.seq = ended.seq returning l.*
  loop
    perform onward.lease_expired(p_inlet, v_lease, p_now);
    v_count := v_count + 1;
  end loop;
  v_more := v_count = p_most;
  with due as (
    select seq from onward.scheduled where inlet = p_inlet.id and due <= p_now
    order by inlet, due limit p_most for update skip locked),
  gone as (delete from onward.scheduled s using due where s.seq = due.seq returning s.*),
  alone as (insert into onward.suspect (seq, inlet, vt, kind, expires_at, size, marks)
    select seq, inlet, vt, kind, expires_at, size, marks from gone where marks & 8 <> 0),
  flows as (insert into onward.flow (inlet, fkey, served, idle)
    select distinct inlet, fkey, 0, false from gone where fkey is not null and marks & 8 = 0 order by 1, 2
    on conflict (inlet, fkey) do update set idle = false),
  moved as (insert into onward.ready (inlet, vt, seq, kind, fkey, expires_at, size, marks)
    select inlet, vt, seq, kind, fkey, expires_at, size, marks from gone where marks & 8 = 0)
  select count(*) into v_count from gone;
  v_more := v_more or v_count = p_most;
  return onward.expire(p_inlet, p_now, p_most) or v_more;
end $$;

-- Counts as expired what waits and whose time has run out.
create function onward.expire(p_inlet onward.inlet, p_now bigint, p_most int) returns boolean language plpgsql
  set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
  set plan_cache_mode = force_generic_plan as $$
declare v_seq bigint; v_marks smallint; v_message onward.message; v_count int := 0; v_bytes bigint := 0; v_before int;
begin
  loop
    v_before := v_count;
    for v_seq in
      select seq from onward.ready where inlet = p_inlet.id and expires_at <= p_now
      union all select seq from onward.scheduled where inlet = p_inlet.id and expires_at <= p_now
      union all select seq from onward.behind where inlet = p_inlet.id and expires_at <= p_now
      union all select seq from onward.suspect where inlet = p_inlet.id and expires_at <= p_now
      limit p_most
    loop
      select * into v_message from onward.message where seq = v_seq;
      if p_inlet.ordering <> 0 and v_message.okey is not null then
        perform onward.lock_chain(p_inlet.id, v_message.okey);
      end if;
      v_marks := onward.pull(v_seq);
      continue when v_marks is null;
      perform onward.finish(v_message, v_marks, 5,
        coalesce((select attempts from onward.past where seq = v_seq), 0), p_now);
      v_count := v_count + 1;
      v_bytes := v_bytes + v_message.size;
    end loop;
    -- What came forward in its order key may have expired as well.
    exit when v_count = v_before or v_count >= p_most;
  end loop;
  if v_count > 0 then
    insert into onward.delta (inlet, expired, bytes) values (p_inlet.id, v_count, -v_bytes);
  end if;
  return v_count >= p_most;
end $$;
