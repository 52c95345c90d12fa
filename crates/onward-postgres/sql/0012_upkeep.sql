-- What one process does for all, once a second at most.

-- Folds the books. What is summed up is what was deleted, so nothing is counted twice or not at all.
create function onward.fold() returns void language plpgsql as $$
begin
  with gone as (delete from onward.delta returning *),
  sums as (select inlet, sum(accepted) accepted, sum(done) done, sum(expired) expired, sum(cancelled) cancelled,
    sum(purged) purged, sum(shed) shed, sum(deliveries) deliveries, sum(failures) failures, sum(duplicates) duplicates,
    sum(lost) lost, sum(bytes) bytes, sum(dead) dead from gone group by inlet)
  update onward.tally t set accepted = t.accepted + s.accepted, done = t.done + s.done, expired = t.expired + s.expired,
    cancelled = t.cancelled + s.cancelled, purged = t.purged + s.purged, shed = t.shed + s.shed,
    deliveries = t.deliveries + s.deliveries, failures = t.failures + s.failures, duplicates = t.duplicates + s.duplicates,
    lost = t.lost + s.lost, bytes = t.bytes + s.bytes, dead = t.dead + s.dead
  from sums s where s.inlet = t.inlet;
  update onward.inlet i set est_depth = t.depth, est_bytes = t.bytes, est_dead = t.dead from (
    select inlet, accepted - done - expired - cancelled - purged - shed - dead as depth, bytes, dead from onward.tally) t
  where t.inlet = i.id and (t.depth, t.bytes, t.dead) is distinct from (i.est_depth, i.est_bytes, i.est_dead);
end $$;

-- Forgets what need not be remembered any more, at most `p_most` of each kind.
create function onward.prune(p_now bigint, p_most int) returns void language plpgsql as $$
declare v_inlet onward.inlet; v_seqs bigint[]; v_over bigint;
begin
  for v_inlet in select * from onward.inlet order by id loop
    v_seqs := array(select seq from onward.done where inlet = v_inlet.id
      and ended <= p_now - greatest(v_inlet.dedup_window, v_inlet.result_keep, @remembered@)
      order by ended limit p_most for update skip locked);
    if v_seqs = '{}' then
      select count(*) - v_inlet.dedup_max into v_over from onward.done where inlet = v_inlet.id;
      if v_over > 0 then
        v_seqs := array(select seq from onward.done where inlet = v_inlet.id order by ended
          limit least(v_over, p_most) for update skip locked);
      end if;
    end if;
    if v_seqs <> '{}' then
      delete from onward.done where seq = any (v_seqs);
      delete from onward.past where seq = any (v_seqs);
      delete from onward.message where seq = any (v_seqs);
    end if;
    if v_inlet.dead_keep is not null then
      for v_over in select seq from onward.dead where inlet = v_inlet.id and died <= p_now - v_inlet.dead_keep
        order by died limit p_most loop
        perform onward.lock_chain(v_inlet.id, (select okey from onward.message where seq = v_over));
        perform onward.purge_one(v_inlet, v_over, true, p_now);
      end loop;
    end if;
    if v_inlet.fair then
      delete from onward.flow f where f.inlet = v_inlet.id and f.idle and f.fkey <> '' and f.ctid in (
        select ctid from onward.flow where inlet = v_inlet.id and idle and coalesce(tokens_at, 0) < p_now - 3600000000
        limit p_most for update skip locked);
    end if;
  end loop;
  delete from onward.settled where at <= p_now - @remembered@;
  delete from onward.bulk where at <= p_now - 604800000000;
  delete from onward.record where expires <= p_now;
end $$;

-- The call of a process that waits: says for which inlets, is told which of them have something (or will, at `due`), and
-- keeps house for all when nobody else does and `p_keep`.
create function onward.beat(p_process text, p_names text[], p_sleep bigint, p_keep boolean)
returns table (name text, ready boolean, due bigint, now bigint) language plpgsql as $$
#variable_conflict use_column
declare v_now bigint := onward.now_us(); v_inlet onward.inlet;
begin
  if p_keep and pg_try_advisory_xact_lock(hashtextextended('beat', @lock@)) then
    for v_inlet in select * from onward.inlet i where
        exists (select 1 from onward.leased l where l.inlet = i.id and l.until <= v_now)
        or exists (select 1 from onward.scheduled s where s.inlet = i.id and s.due <= v_now) order by id loop
      perform onward.tick(v_inlet, v_now);
    end loop;
    if exists (select 1 from onward.delta) then perform onward.fold(); end if;
    if random() < 0.1 then perform onward.prune(v_now, 10000); end if;
  end if;
  if p_sleep is null then
    delete from onward.sleeper where process = p_process;
  else
    insert into onward.sleeper as s (inlet, process, until)
      select id, p_process, v_now + p_sleep from onward.inlet where name = any (p_names) order by id
    on conflict (inlet, process) do update set until = excluded.until;
  end if;
  return query select i.name,
    exists (select 1 from onward.ready r where r.inlet = i.id) or exists (select 1 from onward.suspect u where u.inlet = i.id),
    least((select min(c.due) from onward.scheduled c where c.inlet = i.id),
      (select min(l.until) from onward.leased l where l.inlet = i.id)), v_now
  from onward.inlet i where i.name = any (p_names);
end $$;

create function onward.drop_inlet(p_name text, p_only_if_empty boolean) returns void language plpgsql as $$
declare v_inlet onward.inlet := onward.must_inlet(p_name); v_open bigint;
begin
  perform 1 from onward.inlet where id = v_inlet.id for update;
  if p_only_if_empty then
    select count(*) into v_open from onward.message m where m.inlet = v_inlet.id
      and not exists (select 1 from onward.done d where d.seq = m.seq);
    if v_open > 0 then raise exception '% is not empty', p_name using errcode = 'OW002'; end if;
  end if;
  delete from onward.ready where inlet = v_inlet.id;
  delete from onward.scheduled where inlet = v_inlet.id;
  delete from onward.behind where inlet = v_inlet.id;
  delete from onward.suspect where inlet = v_inlet.id;
  delete from onward.leased where inlet = v_inlet.id;
  delete from onward.dead where inlet = v_inlet.id;
  delete from onward.done where inlet = v_inlet.id;
  delete from onward.past p using onward.message m where m.seq = p.seq and m.inlet = v_inlet.id;
  delete from onward.message where inlet = v_inlet.id;
  delete from onward.chain where inlet = v_inlet.id;
  delete from onward.uniq where inlet = v_inlet.id;
  delete from onward.flow where inlet = v_inlet.id;
  delete from onward.gate where inlet = v_inlet.id;
  delete from onward.tally where inlet = v_inlet.id;
  delete from onward.delta where inlet = v_inlet.id;
  delete from onward.sleeper where inlet = v_inlet.id;
  delete from onward.inlet where id = v_inlet.id;
end $$;
