-- Redrive and purge: resumable, at most a step at a time.

-- Whether a message fits a selection; `p_since` is when it died or was accepted.
create function onward.fits(p_seq bigint, p_since bigint, p_select jsonb, p_now bigint) returns boolean language sql stable as $$
  select (p_select->'ids' is null or p_select->'ids' ? m.id)
    and (p_select->'kind' is null or m.kind = p_select->>'kind')
    and (p_select->'correlation' is null or m.correlation = p_select->>'correlation')
    and (p_select->'okey' is null or m.okey = p_select->>'okey')
    and (p_select->'cause' is null or p.causes->-1->>'kind' = p_select->>'cause')
    and (p_select->'error' is null or strpos(p.causes->-1->>'error', p_select->>'error') > 0)
    and (p_select->'before' is null or p_since < p_now + (p_select->>'before')::bigint)
  from onward.message m left join onward.past p on p.seq = m.seq where m.seq = p_seq
$$;

-- What an earlier call with this id has done: null when there was none.
create function onward.bulk_before(p_bulk uuid) returns onward.bulk language sql as $$
  select * from onward.bulk where id = p_bulk for update
$$;

create function onward.bulk_report(p_bulk uuid, p_matched bigint, p_step bigint, p_finished boolean, p_now bigint)
returns onward.bulk language sql as $$
  insert into onward.bulk as b (id, matched, done, finished, at) values (p_bulk, p_matched, p_step, p_finished, p_now)
  on conflict (id) do update set done = b.done + p_step, finished = p_finished, at = p_now returning b.*
$$;

create function onward.redrive(p_name text, p_select jsonb, p_limit bigint, p_spacing bigint, p_bulk uuid, p_dry boolean,
  p_step int) returns onward.bulk language plpgsql as $$
declare
  v_now bigint := onward.now_us(); v_inlet onward.inlet := onward.must_inlet(p_name); v_bulk onward.bulk;
  v_seqs bigint[]; v_part bigint[]; v_matched bigint; v_seq bigint; v_done bigint := 0; v_left bigint;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_bulk::text, @lock@));
  v_bulk := onward.bulk_before(p_bulk);
  if v_bulk.finished then return v_bulk; end if;
  perform onward.tick(v_inlet, v_now);
  v_left := p_limit - coalesce(v_bulk.done, 0);
  v_seqs := array(select d.seq from onward.dead d where d.inlet = v_inlet.id and onward.fits(d.seq, d.died, p_select, v_now)
    order by d.seq limit v_left);
  if v_inlet.ordering = 2 then
    -- A key that was set aside comes back as a whole.
    v_seqs := array(select d.seq from onward.dead d where d.inlet = v_inlet.id and (d.seq = any (v_seqs) or d.okey in (
      select k.okey from onward.dead k where k.seq = any (v_seqs))) order by d.seq);
  end if;
  v_matched := cardinality(v_seqs) + coalesce(v_bulk.done, 0);
  if p_dry then return row(p_bulk, v_matched, 0, true, v_now)::onward.bulk; end if;
  v_part := v_seqs[1:p_step];
  if v_inlet.ordering = 2 then
    v_part := array(select d.seq from onward.dead d where d.inlet = v_inlet.id and (d.seq = any (v_part) or d.okey in (
      select k.okey from onward.dead k where k.seq = any (v_part))) order by d.seq);
  end if;
  perform 1 from onward.chain c where c.inlet = v_inlet.id and c.okey in (
    select d.okey from onward.dead d where d.seq = any (v_part)) order by c.okey for update;
  foreach v_seq in array v_part loop
    if onward.revive(v_inlet, v_seq, v_now + p_spacing * (v_done + coalesce(v_bulk.done, 0)), v_now) then
      v_done := v_done + 1;
    end if;
  end loop;
  perform onward.tell(v_inlet.id, v_now);
  return onward.bulk_report(p_bulk, v_matched, v_done, cardinality(v_seqs) <= cardinality(v_part), v_now);
end $$;

-- One dead letter back to work; false when its unique key was taken meanwhile.
create function onward.revive(p_inlet onward.inlet, p_seq bigint, p_due bigint, p_now bigint) returns boolean
language plpgsql as $$
declare v_message onward.message; v_chain onward.chain; v_marks int := 1;
begin
  select * into v_message from onward.message where seq = p_seq;
  if v_message.ukey is not null then
    insert into onward.uniq (inlet, ukey, seq) values (p_inlet.id, v_message.ukey, p_seq) on conflict do nothing;
    if not found then return false; end if;
    v_marks := v_marks | 4;
  end if;
  delete from onward.dead where seq = p_seq;
  if not found then return false; end if;
  update onward.past set attempts = 0, crashes = 0 where seq = p_seq;
  insert into onward.delta (inlet, dead, bytes) values (p_inlet.id, -1, v_message.size);
  if p_inlet.ordering <> 0 and v_message.okey is not null then
    select * into v_chain from onward.chain where inlet = p_inlet.id and okey = v_message.okey;
    if v_chain.head is not null and v_chain.head <> p_seq then
      insert into onward.behind (seq, inlet, okey, due, expires_at, size, marks)
        values (p_seq, p_inlet.id, v_message.okey, p_due, v_message.expires_at, v_message.size, v_marks);
      return true;
    end if;
    insert into onward.chain (inlet, okey, head) values (p_inlet.id, v_message.okey, p_seq)
      on conflict (inlet, okey) do update set head = p_seq, aside = false;
    v_marks := v_marks | 2;
  end if;
  perform onward.here(p_seq, p_due, v_marks, p_now);
  return true;
end $$;

create function onward.purge(p_name text, p_dead boolean, p_select jsonb, p_limit bigint, p_bulk uuid, p_dry boolean,
  p_step int) returns onward.bulk language plpgsql as $$
declare
  v_now bigint := onward.now_us(); v_inlet onward.inlet := onward.must_inlet(p_name); v_bulk onward.bulk;
  v_seqs bigint[]; v_matched bigint; v_seq bigint; v_done bigint := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_bulk::text, @lock@));
  v_bulk := onward.bulk_before(p_bulk);
  if v_bulk.finished then return v_bulk; end if;
  perform onward.tick(v_inlet, v_now);
  if p_dead then
    v_seqs := array(select d.seq from onward.dead d where d.inlet = v_inlet.id
      and onward.fits(d.seq, d.died, p_select, v_now) order by d.seq limit p_limit - coalesce(v_bulk.done, 0));
  else
    v_seqs := array(select m.seq from onward.message m where m.seq in (
        select seq from onward.ready where inlet = v_inlet.id
        union all select seq from onward.scheduled where inlet = v_inlet.id
        union all select seq from onward.behind where inlet = v_inlet.id
        union all select seq from onward.suspect where inlet = v_inlet.id)
      and onward.fits(m.seq, m.accepted, p_select, v_now) order by m.seq limit p_limit - coalesce(v_bulk.done, 0));
  end if;
  v_matched := cardinality(v_seqs) + coalesce(v_bulk.done, 0);
  if p_dry then return row(p_bulk, v_matched, 0, true, v_now)::onward.bulk; end if;
  if v_inlet.ordering <> 0 then
    perform 1 from onward.chain c where c.inlet = v_inlet.id and c.okey in (
      select m.okey from onward.message m where m.seq = any (v_seqs[1:p_step])) order by c.okey for update;
  end if;
  foreach v_seq in array v_seqs[1:p_step] loop
    if onward.purge_one(v_inlet, v_seq, p_dead, v_now) then v_done := v_done + 1; end if;
  end loop;
  return onward.bulk_report(p_bulk, v_matched, v_done, cardinality(v_seqs) <= p_step, v_now);
end $$;

create function onward.purge_one(p_inlet onward.inlet, p_seq bigint, p_dead boolean, p_now bigint) returns boolean
language plpgsql as $$
declare v_message onward.message; v_marks int;
begin
  select * into v_message from onward.message where seq = p_seq;
  if not p_dead then
    v_marks := onward.pull(p_seq);
    if v_marks is null then return false; end if;
    perform onward.finish(v_message, v_marks, 6, 0, p_now);
    insert into onward.delta (inlet, purged, bytes) values (p_inlet.id, 1, -v_message.size);
    return true;
  end if;
  delete from onward.dead where seq = p_seq;
  if not found then return false; end if;
  perform onward.finish(v_message, 0, 6, 0, p_now);
  insert into onward.delta (inlet, purged, dead) values (p_inlet.id, 1, -1);
  if p_inlet.ordering <> 0 and v_message.okey is not null then
    if p_inlet.ordering = 1 then
      if exists (select 1 from onward.chain where inlet = p_inlet.id and okey = v_message.okey and head = p_seq) then
        perform onward.advance(p_inlet.id, v_message.okey, p_now);
      end if;
    elsif not exists (select 1 from onward.dead where inlet = p_inlet.id and okey = v_message.okey) then
      delete from onward.chain where inlet = p_inlet.id and okey = v_message.okey and head is null;
    end if;
  end if;
  return true;
end $$;
