-- Looking, without handing anything out.

create function onward.ids_of(p_names text[]) returns int[] language sql stable as $$
  select coalesce(array_agg(id order by id), '{}') from onward.inlet where name = any (p_names) or p_names = '{}'
$$;

-- Makes true of these inlets what time has brought about.
create function onward.tick_all(p_names text[]) returns void language plpgsql as $$
declare v_now bigint := onward.now_us(); v_inlet onward.inlet;
begin
  for v_inlet in select * from onward.inlet where name = any (p_names) or p_names = '{}' order by id loop
    for v_round in 1..100 loop
      exit when not onward.tick(v_inlet, v_now);
    end loop;
  end loop;
end $$;

create function onward.stats(p_names text[])
returns table (name text, accepted bigint, done bigint, dead bigint, waiting bigint, leased bigint, delayed bigint,
  expired bigint, cancelled bigint, purged bigint, shed bigint, blocked bigint, bytes bigint, oldest bigint, next_due bigint,
  deliveries bigint, failures bigint, lost bigint, duplicates bigint, dedup_entries bigint, dedup_window bigint,
  paused boolean, dead_full boolean) language sql stable as $$
  with moment as materialized (select onward.now_us() as now),
  asked as (select i.* from onward.inlet i where i.name = any (p_names) or p_names = '{}'),
  books as (select inlet, accepted, done, expired, cancelled, purged, shed, deliveries, failures, duplicates, lost, bytes
      from onward.tally where inlet in (select id from asked)
    union all select inlet, accepted, done, expired, cancelled, purged, shed, deliveries, failures, duplicates, lost, bytes
      from onward.delta where inlet in (select id from asked)),
  sums as (select inlet, sum(accepted)::bigint accepted, sum(done)::bigint done, sum(expired)::bigint expired,
      sum(cancelled)::bigint cancelled, sum(purged)::bigint purged, sum(shed)::bigint shed,
      sum(deliveries)::bigint deliveries, sum(failures)::bigint failures, sum(duplicates)::bigint duplicates,
      sum(lost)::bigint lost, sum(bytes)::bigint bytes from books group by inlet)
  select i.name, coalesce(s.accepted, 0), coalesce(s.done, 0),
    (select count(*) from onward.dead d where d.inlet = i.id),
    (select count(*) from onward.ready r where r.inlet = i.id) + (select count(*) from onward.suspect u where u.inlet = i.id)
      + (select count(*) from onward.behind b where b.inlet = i.id)
      - (select count(*) from onward.behind b where b.inlet = i.id and b.due > moment.now),
    (select count(*) from onward.leased l where l.inlet = i.id),
    (select count(*) from onward.scheduled c where c.inlet = i.id)
      + (select count(*) from onward.behind b where b.inlet = i.id and b.due > moment.now),
    coalesce(s.expired, 0), coalesce(s.cancelled, 0), coalesce(s.purged, 0), coalesce(s.shed, 0),
    (select count(*) from onward.behind b where b.inlet = i.id), coalesce(s.bytes, 0),
    (select min(m.accepted) from onward.message m where m.seq in (
      (select r.seq from onward.ready r where r.inlet = i.id order by r.inlet, r.vt, r.seq limit 1)
      union all (select u.seq from onward.suspect u where u.inlet = i.id order by u.inlet, u.vt, u.seq limit 1)
      union all (select b.seq from onward.behind b where b.inlet = i.id and (b.due is null or b.due <= moment.now)
        order by b.seq limit 1))),
    least((select min(c.due) from onward.scheduled c where c.inlet = i.id),
      (select min(b.due) from onward.behind b where b.inlet = i.id and b.due > moment.now)),
    coalesce(s.deliveries, 0), coalesce(s.failures, 0), coalesce(s.lost, 0), coalesce(s.duplicates, 0),
    least((select count(*) from onward.done d where d.inlet = i.id and d.ended + i.dedup_window > moment.now), i.dedup_max),
    i.dedup_window, i.paused, onward.dead_full(i)
  from asked i cross join moment left join sums s on s.inlet = i.id order by i.id
$$;

-- Live leases, oldest first.
create function onward.lease_views(p_name text, p_most int)
returns table (id text, worker text, process text, attempt bigint, since bigint, until bigint) language sql stable as $$
  select m.id, l.worker, l.process, l.attempt, l.since, l.until from onward.leased l join onward.message m on m.seq = l.seq
  where l.inlet = (select id from onward.inlet where name = p_name) order by l.since, l.seq limit p_most
$$;

-- The place of messages in a state after `p_after`, oldest first.
create function onward.in_state(p_inlet int, p_state int, p_after bigint, p_most int) returns setof bigint
language plpgsql stable as $$
declare v_now bigint := onward.now_us();
begin
  if p_state = 0 then
    return query select s.seq from (
      select r.seq from onward.ready r where r.inlet = p_inlet
      union all select u.seq from onward.suspect u where u.inlet = p_inlet
      union all select b.seq from onward.behind b where b.inlet = p_inlet and (b.due is null or b.due <= v_now)) s
      where s.seq > p_after order by s.seq limit p_most;
  elsif p_state = 1 then
    return query select s.seq from (
      select c.seq from onward.scheduled c where c.inlet = p_inlet
      union all select b.seq from onward.behind b where b.inlet = p_inlet and b.due > v_now) s
      where s.seq > p_after order by s.seq limit p_most;
  elsif p_state = 2 then
    return query select l.seq from onward.leased l where l.inlet = p_inlet and l.seq > p_after order by l.seq limit p_most;
  elsif p_state = 3 then
    return query select d.seq from onward.dead d where d.inlet = p_inlet and d.seq > p_after order by d.inlet, d.seq limit p_most;
  else
    return query select d.seq from onward.done d where d.seq > p_after and d.inlet = p_inlet and d.state = p_state
      order by d.seq limit p_most;
  end if;
end $$;

-- Everything that is known of messages.
create function onward.views(p_seqs bigint[])
returns table (delivery onward.delivery, original bytea, state int, attempts bigint, crashes bigint, blocked boolean,
  suspect boolean, cancel boolean, due bigint, ended bigint, worker text, process text, lease_attempt bigint, since bigint,
  until bigint, result bytea, result_type text) language sql stable as $$
  select (i.name, m.seq, null, coalesce(l.attempt, 0), 0, m.accepted, false, m.id, m.kind, m.version, m.made, m.source,
      m.correlation, m.causation, m.headers, m.data, m.content_type, m.okey, m.dkey, m.fkey, m.ukey, m.priority, m.due,
      m.expiry, m.edition, p.causes::text, p.progress, p.progress_type)::onward.delivery,
    m.original,
    case when l.seq is not null then 2 when x.seq is not null then 3 when d.seq is not null then d.state
      when c.seq is not null or b.due > moment.now then 1 else 0 end,
    coalesce(l.attempt, d.attempt, p.attempts, 0), coalesce(p.crashes, 0), b.seq is not null,
    coalesce(l.marks & 8 <> 0, false) or u.seq is not null or coalesce(c.marks & 8 <> 0, false),
    coalesce(l.marks & 16 <> 0, false),
    case when c.seq is not null then c.due when b.due > moment.now then b.due end,
    coalesce(x.died, d.ended), l.worker, l.process, l.attempt, l.since, l.until,
    case when d.ended + i.result_keep > moment.now then d.result end, d.result_type
  from unnest(p_seqs) with ordinality q(seq, n) cross join (select onward.now_us() as now) moment
  join onward.message m on m.seq = q.seq join onward.inlet i on i.id = m.inlet
  left join onward.leased l on l.seq = q.seq left join onward.dead x on x.seq = q.seq
  left join onward.done d on d.seq = q.seq left join onward.scheduled c on c.seq = q.seq
  left join onward.behind b on b.seq = q.seq left join onward.suspect u on u.seq = q.seq
  left join onward.past p on p.seq = q.seq
  order by q.n
$$;

create function onward.find_id(p_inlet int, p_id text) returns setof bigint language sql stable as $$
  select m.seq from onward.message m where m.inlet = p_inlet and m.dkey is null and coalesce(m.dkey, m.id) = p_id
  union select m.seq from onward.message m where m.inlet = p_inlet and m.dkey is not null and m.id = p_id
  order by 1 desc
$$;

-- Unfinished messages and dead letters of a correlation id or of an order key, in order.
create function onward.find_open(p_inlet int, p_correlation text, p_okey text, p_after bigint, p_most int)
returns setof bigint language sql stable as $$
  select m.seq from onward.message m where m.inlet = p_inlet and m.seq > p_after
    and (m.correlation = p_correlation or m.okey = p_okey
      or m.correlation is null and m.dkey is null and coalesce(m.dkey, m.id) = p_correlation
      or m.correlation is null and m.dkey is not null and m.id = p_correlation)
    and not exists (select 1 from onward.done d where d.seq = m.seq)
  order by m.seq limit p_most
$$;
