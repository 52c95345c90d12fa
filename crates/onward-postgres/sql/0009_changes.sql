-- Changes of messages that are there: cancelling, moving, progress, the end of a process.

-- The newest message of an id.
create function onward.by_id(p_inlet int, p_id text) returns onward.message language sql stable as $$
  select m.* from onward.message m where m.inlet = p_inlet
    and (coalesce(m.dkey, m.id) = p_id and m.dkey is null or m.id = p_id and m.dkey is not null)
  order by m.seq desc limit 1
$$;

create function onward.must_inlet(p_name text) returns onward.inlet language plpgsql stable as $$
declare v_inlet onward.inlet;
begin
  select * into v_inlet from onward.inlet where name = p_name;
  if not found then raise exception '% does not exist', p_name using errcode = 'OW001'; end if;
  return v_inlet;
end $$;

-- 0 it was waiting and is gone, 1 its holder is told, 2 it is finished already.
create function onward.cancel(p_name text, p_id text) returns int language plpgsql as $$
declare v_now bigint := onward.now_us(); v_inlet onward.inlet := onward.must_inlet(p_name); v_message onward.message; v_marks smallint;
begin
  perform onward.tick(v_inlet, v_now);
  v_message := onward.by_id(v_inlet.id, p_id);
  if v_message.seq is null then raise exception '% is not in %', p_id, p_name using errcode = 'OW001'; end if;
  if v_inlet.ordering <> 0 and v_message.okey is not null then perform onward.lock_chain(v_inlet.id, v_message.okey); end if;
  v_marks := onward.pull(v_message.seq);
  if v_marks is not null then
    perform onward.finish(v_message, v_marks, 6, coalesce((select attempts from onward.past where seq = v_message.seq), 0), v_now);
    insert into onward.delta (inlet, cancelled, bytes) values (v_inlet.id, 1, -v_message.size);
    return 0;
  end if;
  update onward.leased set marks = marks | 16 where seq = v_message.seq;
  return case when found then 1 else 2 end;
end $$;

create function onward.reschedule(p_name text, p_id text, p_delay bigint) returns void language plpgsql as $$
declare v_now bigint := onward.now_us(); v_inlet onward.inlet := onward.must_inlet(p_name); v_message onward.message; v_marks smallint;
begin
  perform onward.tick(v_inlet, v_now);
  v_message := onward.by_id(v_inlet.id, p_id);
  if v_inlet.ordering <> 0 and v_message.okey is not null then perform onward.lock_chain(v_inlet.id, v_message.okey); end if;
  update onward.behind set due = v_now + p_delay where seq = v_message.seq;
  if found then return; end if;
  v_marks := onward.pull(v_message.seq);
  if v_marks is null then raise exception '% does not wait in %', p_id, p_name using errcode = 'OW001'; end if;
  perform onward.here(v_message.seq, v_now + p_delay, v_marks, v_now);
  perform onward.tell(v_inlet.id, v_now);
end $$;

-- Fails unless the lease is live; it stays so until the end of the transaction.
create function onward.fence(p_seq bigint, p_nonce uuid) returns void language plpgsql as $$
begin
  perform 1 from onward.leased where seq = p_seq and nonce = p_nonce and until > onward.now_us() for update;
  if not found then raise exception 'the lease has ended' using errcode = 'OW005'; end if;
end $$;

create function onward.progress(p_seq bigint, p_nonce uuid, p_detail bytea, p_type text) returns void language plpgsql as $$
begin
  perform onward.fence(p_seq, p_nonce);
  insert into onward.past as p (seq, attempts, progress, progress_type)
    values (p_seq, (select attempt - 1 from onward.leased where seq = p_seq), p_detail, p_type)
  on conflict (seq) do update set progress = p_detail, progress_type = p_type;
  update onward.leased set marks = marks | 1 where seq = p_seq and marks & 1 = 0;
end $$;

-- Ends every lease of a process. When it died, what it held is suspect; what it held alone has crashed it.
create function onward.end_process(p_process text, p_died boolean) returns int language plpgsql as $$
declare v_now bigint := onward.now_us(); v_inlet onward.inlet; v_lease onward.leased; v_count int := 0; v_alone boolean;
begin
  for v_inlet in select i.* from onward.inlet i where i.id in (select inlet from onward.leased where process = p_process) loop
    perform onward.tick(v_inlet, v_now);
  end loop;
  perform 1 from onward.chain c where (c.inlet, c.okey) in (
      select m.inlet, m.okey from onward.message m join onward.leased l on l.seq = m.seq
      where l.process = p_process and l.marks & 2 <> 0)
    order by c.inlet, c.okey for update;
  v_alone := (select count(*) from onward.leased where process = p_process) = 1;
  for v_lease in delete from onward.leased where process = p_process returning * loop
    perform onward.holder_gone(v_lease, p_died, v_alone, v_now);
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;

create function onward.holder_gone(p_lease onward.leased, p_died boolean, p_alone boolean, p_now bigint) returns void
language plpgsql as $$
declare v_inlet onward.inlet; v_message onward.message; v_killed record; v_marks int := p_lease.marks; v_crashes bigint;
begin
  select * into v_inlet from onward.inlet where id = p_lease.inlet;
  select * into v_message from onward.message where seq = p_lease.seq;
  if v_marks & 16 <> 0 then
    perform onward.finish(v_message, v_marks, 6, p_lease.attempt - 1, p_now);
    insert into onward.delta (inlet, cancelled, bytes) values (v_inlet.id, 1, -v_message.size);
    return;
  end if;
  if not p_died then
    perform onward.here(p_lease.seq, null, v_marks, p_now);
  elsif not p_alone then
    perform onward.here(p_lease.seq, null, v_marks | 8, p_now);
  else
    perform onward.add_cause(p_lease.seq,
      onward.cause('crashed', 'no word from its holder', p_lease.attempt, p_now, p_lease.worker),
      v_inlet.causes_max, p_lease.attempt, 1);
    select crashes into v_crashes from onward.past where seq = p_lease.seq;
    if v_crashes >= v_inlet.crashes_max then
      v_killed := onward.kill(v_inlet, v_message, v_marks, p_now);
      insert into onward.delta (inlet, dead, bytes) values (v_inlet.id, v_killed.died, -v_killed.bytes);
    else
      perform onward.here(p_lease.seq,
        p_now + onward.retry_wait(v_inlet.config->'retry', p_lease.attempt, random()), v_marks | 9, p_now);
    end if;
  end if;
  perform onward.tell(v_inlet.id, p_now);
end $$;

-- Writes a record; fails as a conflict unless what is expected stands there: 0 anything, 1 nothing, 2 something, 3 `p_revision`.
create function onward.expect(p_key text, p_expect int, p_revision bigint) returns void language plpgsql as $$
declare v_revision bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_key, @lock@));
  select revision into v_revision from onward.record where key = p_key and (expires is null or expires > onward.now_us());
  if p_expect = 1 and v_revision is not null or p_expect = 2 and v_revision is null
    or p_expect = 3 and v_revision is distinct from p_revision then
    raise exception '% stands at revision %', p_key, coalesce(v_revision::text, 'none') using errcode = 'OW002';
  end if;
end $$;

create function onward.put_record(p_key text, p_value bytea, p_expect int, p_revision bigint, p_ttl bigint) returns bigint
language plpgsql as $$
declare v_now bigint := onward.now_us(); v_revision bigint;
begin
  perform onward.expect(p_key, p_expect, p_revision);
  insert into onward.record as r (key, value, revision, expires, written)
    values (p_key, p_value, nextval('onward.revision_seq'), v_now + p_ttl, v_now)
  on conflict (key) do update set value = excluded.value, revision = excluded.revision, expires = excluded.expires,
    written = excluded.written returning r.revision into v_revision;
  return v_revision;
end $$;
