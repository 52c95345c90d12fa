-- How one message moves from one table to another. Whoever calls these holds the lock of the message's place, and of
-- its order key where it has one.

-- The wait after the failure of attempt `p_attempt`, as `RetryPolicy::delay` has it.
create function onward.retry_wait(p_retry jsonb, p_attempt bigint, p_random double precision) returns bigint
language plpgsql immutable as $$
declare
  v_step double precision := greatest(p_attempt - 1, 0);
  v_most double precision := (p_retry->>'delay_max_ms')::numeric;
  v_floor bigint := greatest((p_retry->>'delay_min_ms')::numeric, 1);
  v_curve jsonb := p_retry->'curve';
  v_base double precision; v_factor double precision; v_window double precision;
begin
  if v_curve ? 'exponential' then
    v_base := (v_curve->'exponential'->>'base_ms')::numeric;
    v_factor := greatest((v_curve->'exponential'->>'factor')::double precision, 1);
    if v_base <= 0 then v_window := 0;
    elsif ln(v_base) + v_step * ln(v_factor) > 41 then v_window := v_most;
    else v_window := v_base * power(v_factor, v_step); end if;
  elsif v_curve ? 'fixed' then
    v_window := (v_curve->'fixed'->>'every_ms')::numeric;
  else
    v_curve := v_curve->'steps'->'waits_ms';
    v_window := coalesce((v_curve->>least(v_step, greatest(jsonb_array_length(v_curve) - 1, 0))::int)::numeric, 0);
  end if;
  v_window := least(v_window, v_most);
  v_window := case p_retry->>'jitter' when 'none' then v_window
    when 'half' then v_window / 2 + v_window / 2 * p_random else v_window * p_random end;
  return least(greatest(trunc(v_window * 1000), v_floor * 1000), greatest(v_most, v_floor) * 1000)::bigint;
end $$;

create function onward.cause(p_kind text, p_error text, p_attempt bigint, p_at bigint, p_worker text) returns jsonb
language sql immutable as $$
  select jsonb_build_object('kind', p_kind, 'error', p_error, 'attempt', p_attempt, 'at', p_at, 'worker', p_worker)
$$;

-- Adds a cause; beyond the bound the first and the latest are kept.
create function onward.add_cause(p_seq bigint, p_cause jsonb, p_most bigint, p_attempts bigint, p_crashes int) returns void
language plpgsql as $$
begin
  insert into onward.past as p (seq, attempts, crashes, causes)
    values (p_seq, p_attempts, p_crashes, jsonb_build_array(p_cause))
  on conflict (seq) do update set
    attempts = excluded.attempts,
    crashes = p.crashes + p_crashes,
    causes = case when jsonb_array_length(p.causes) >= p_most
      then (p.causes - least(1, jsonb_array_length(p.causes) - 1)) || p_cause else p.causes || p_cause end;
end $$;

-- Tells one process that waits for work of this inlet, if any does.
create function onward.tell(p_inlet int, p_now bigint) returns void language plpgsql as $$
begin
  delete from onward.sleeper s using (
    select inlet, process from onward.sleeper where inlet = p_inlet and until > p_now
    limit 1 for update skip locked) one
  where s.inlet = one.inlet and s.process = one.process;
  if found then perform pg_notify('onward_@schema@', (select name from onward.inlet where id = p_inlet)); end if;
end $$;

-- Puts a message where it waits for its turn: it is unordered, or the head of its key.
create function onward.here(p_seq bigint, p_due bigint, p_marks int, p_now bigint) returns void language plpgsql as $$
begin
  if p_due > p_now then
    insert into onward.scheduled (seq, inlet, due, vt, kind, fkey, expires_at, size, marks)
      select seq, inlet, p_due, vt, kind, fkey, expires_at, size, p_marks from onward.message where seq = p_seq;
  elsif p_marks & 8 <> 0 then
    insert into onward.suspect (seq, inlet, vt, kind, expires_at, size, marks)
      select seq, inlet, vt, kind, expires_at, size, p_marks from onward.message where seq = p_seq;
  else
    with placed as (
      insert into onward.ready (inlet, vt, seq, kind, fkey, expires_at, size, marks)
      select m.inlet, m.vt, m.seq, m.kind, coalesce(m.fkey, case when i.fair then '' end), m.expires_at, m.size, p_marks
        from onward.message m join onward.inlet i on i.id = m.inlet where m.seq = p_seq
      returning inlet, fkey)
    insert into onward.flow (inlet, fkey, served, idle) select inlet, fkey, 0, false from placed where fkey is not null
    on conflict (inlet, fkey) do update set idle = false;
  end if;
end $$;

-- Takes a waiting message out of whatever table it waits in; null when it does not wait.
create function onward.pull(p_seq bigint) returns smallint language plpgsql as $$
declare v_marks smallint;
begin
  delete from onward.ready r using onward.message m
    where m.seq = p_seq and r.inlet = m.inlet and r.vt = m.vt and r.seq = m.seq returning r.marks into v_marks;
  if found then return v_marks; end if;
  delete from onward.scheduled where seq = p_seq returning marks into v_marks;
  if found then return v_marks; end if;
  delete from onward.behind where seq = p_seq returning marks into v_marks;
  if found then return v_marks; end if;
  delete from onward.suspect where seq = p_seq returning marks into v_marks;
  return v_marks;
end $$;

-- Waits for the order key of a message to be ours, so that nobody else moves its messages.
create function onward.lock_chain(p_inlet int, p_okey text) returns void language sql as $$
  select 1 from onward.chain where inlet = p_inlet and okey = p_okey for update
$$;

-- The head of a key is gone: the next one comes forward.
create function onward.advance(p_inlet int, p_okey text, p_now bigint) returns void language plpgsql as $$
declare v_next onward.behind;
begin
  delete from onward.behind where seq = (
    select seq from onward.behind where inlet = p_inlet and okey = p_okey order by inlet, okey, seq limit 1)
  returning * into v_next;
  if v_next.seq is null then
    delete from onward.chain where inlet = p_inlet and okey = p_okey;
    return;
  end if;
  update onward.chain set head = v_next.seq, aside = false where inlet = p_inlet and okey = p_okey;
  perform onward.here(v_next.seq, v_next.due, v_next.marks | 2, p_now);
end $$;

-- What follows when a message is unfinished no more: its unique key is free, its order key goes on.
create function onward.leave(p_message onward.message, p_marks int, p_now bigint) returns void language plpgsql as $$
begin
  if p_marks & 4 <> 0 then
    delete from onward.uniq where inlet = p_message.inlet and ukey = p_message.ukey and seq = p_message.seq;
  end if;
  if p_marks & 2 <> 0 then
    perform onward.advance(p_message.inlet, p_message.okey, p_now);
  end if;
end $$;

-- Makes a dead letter of it; with `set_aside` the later ones of its key follow. Returns how many died, and their bytes.
create function onward.kill(p_inlet onward.inlet, p_message onward.message, p_marks int, p_now bigint,
  out died int, out bytes bigint) language plpgsql as $$
declare v_follower onward.behind; v_by_key boolean := p_inlet.ordering <> 0 and p_message.okey is not null;
begin
  insert into onward.dead (seq, inlet, died, okey)
    values (p_message.seq, p_inlet.id, p_now, case when v_by_key then p_message.okey end);
  perform onward.leave(p_message, p_marks & 4, p_now);
  died := 1; bytes := p_message.size;
  if not v_by_key or p_inlet.ordering <> 2 then return; end if;
  update onward.chain set head = null, aside = true where inlet = p_inlet.id and okey = p_message.okey;
  for v_follower in delete from onward.behind where inlet = p_inlet.id and okey = p_message.okey returning * loop
    perform onward.set_aside(p_inlet, v_follower.seq, v_follower.marks, p_now);
    died := died + 1; bytes := bytes + v_follower.size;
  end loop;
end $$;

-- Makes a dead letter of a message behind a dead one.
create function onward.set_aside(p_inlet onward.inlet, p_seq bigint, p_marks int, p_now bigint) returns void
language plpgsql as $$
declare v_message onward.message; v_attempts bigint;
begin
  select * into v_message from onward.message where seq = p_seq;
  select attempts into v_attempts from onward.past where seq = p_seq;
  perform onward.add_cause(p_seq,
    onward.cause('behind_dead_head', 'an earlier message of its key is dead', 0, p_now, ''),
    p_inlet.causes_max, coalesce(v_attempts, 0), 0);
  insert into onward.dead (seq, inlet, died, okey) values (p_seq, p_inlet.id, p_now, v_message.okey);
  perform onward.leave(v_message, p_marks & 4, p_now);
end $$;

-- Ends a message for good.
create function onward.finish(p_message onward.message, p_marks int, p_state int, p_attempt bigint, p_now bigint,
  p_nonce uuid default null, p_print bigint default null, p_result bytea default null, p_result_type text default null)
returns void language plpgsql as $$
begin
  insert into onward.done (seq, inlet, state, ended, attempt, nonce, print, result, result_type)
    values (p_message.seq, p_message.inlet, p_state, p_now, p_attempt, p_nonce, p_print, p_result, p_result_type);
  perform onward.leave(p_message, p_marks, p_now);
end $$;

-- Forgets a finished message with all that is known of it.
create function onward.forget(p_seq bigint) returns void language sql as $$
  delete from onward.message where seq = p_seq;
  delete from onward.past where seq = p_seq;
  delete from onward.done where seq = p_seq;
$$;
