-- Accepting messages one by one: those with an order key, a unique key or a fairness key, repeats, and all near a bound.

create function onward.put_slowly(p_inlet onward.inlet, p_bounded boolean, p_now bigint, p_places int[], p_id text[],
  p_kind text[], p_version bigint[], p_made bigint[], p_source text[], p_correlation text[], p_causation text[],
  p_headers bytea[], p_data bytea[], p_type text[], p_okey text[], p_dkey text[], p_fkey text[], p_ukey text[],
  p_priority smallint[], p_due bigint[], p_delay bigint[], p_expiry bigint[], p_life bigint[], p_edition bigint[],
  p_size int[], p_all boolean)
returns table (n int, status int, id text) language plpgsql as $$
#variable_conflict use_column
declare v_i int; v_row onward.message; v_put record; v_depth bigint; v_bytes bigint;
begin
  if p_inlet.ordering <> 0 then
    -- In one order for everybody, so that nobody waits for somebody who waits for him.
    insert into onward.chain as c (inlet, okey)
      select p_inlet.id, okey from (select distinct p_okey[i] as okey from unnest(p_places) i) k where okey is not null
      order by okey
    on conflict (inlet, okey) do update set locks = c.locks + 1;
  end if;
  if p_bounded then
    perform 1 from onward.gate where inlet = p_inlet.id and side = 1 for update;
    perform onward.tick(p_inlet, p_now);
    select d.depth, d.bytes into v_depth, v_bytes from onward.depth(p_inlet.id) d;
  end if;
  foreach v_i in array p_places loop
    v_row := row(nextval('onward.message_seq'), p_inlet.id, p_id[v_i], p_kind[v_i], p_version[v_i], p_made[v_i],
      p_source[v_i], p_correlation[v_i], p_causation[v_i], p_headers[v_i], p_data[v_i], p_type[v_i], p_okey[v_i],
      p_dkey[v_i], p_fkey[v_i], p_ukey[v_i], p_priority[v_i], p_due[v_i], p_expiry[v_i], p_edition[v_i], p_size[v_i],
      p_now, p_now - p_priority[v_i] * p_inlet.ageing, p_now + p_delay[v_i], p_now + p_life[v_i], null)::onward.message;
    select * into v_put from onward.put_one(p_inlet, v_row, v_depth, v_bytes, p_now);
    v_depth := v_put.depth; v_bytes := v_put.bytes;
    if v_put.status > 0 then
      n := v_i; status := v_put.status; id := v_put.id;
      if p_all and status > 1 then
        raise exception '%', onward.put_error(p_inlet, v_row, status)
          using errcode = 'OW00' || status, detail = n::text;
      end if;
      return next;
    end if;
  end loop;
  if p_inlet.ordering <> 0 then
    delete from onward.chain where inlet = p_inlet.id and head is null and not aside
      and okey in (select p_okey[i] from unnest(p_places) i);
  end if;
  if p_inlet.fair is false and exists (select 1 from unnest(p_fkey) f where f is not null) then
    update onward.inlet i set fair = true where i.id = p_inlet.id and not i.fair;
    perform onward.make_fair(p_inlet.id);
  end if;
end $$;

-- One message: new, a repeat, or refused. `p_depth` and `p_bytes` are null where no bound is near.
create function onward.put_one(p_inlet onward.inlet, p_row onward.message, p_depth bigint, p_bytes bigint, p_now bigint,
  out status int, out id text, out depth bigint, out bytes bigint) language plpgsql as $$
#variable_conflict use_column
declare v_seq bigint; v_old onward.message; v_done onward.done; v_shed int; v_marks int := 0;
begin
  depth := p_depth; bytes := p_bytes;
  loop
    insert into onward.message select p_row.*
      on conflict (inlet, (coalesce(dkey, id)), (case when dkey is null then source else '' end)) do nothing
      returning seq into v_seq;
    exit when found;
    select m.* into v_old from onward.message m where m.inlet = p_inlet.id
      and coalesce(m.dkey, m.id) = coalesce(p_row.dkey, p_row.id)
      and (case when m.dkey is null then m.source else '' end) = (case when p_row.dkey is null then p_row.source else '' end);
    continue when not found;
    select d.* into v_done from onward.done d where d.seq = v_old.seq for update skip locked;
    if found and v_done.ended + p_inlet.dedup_window <= p_now then
      perform onward.forget(v_old.seq);
      continue;
    end if;
    id := v_old.id;
    if (v_old.kind, v_old.version, v_old.data) is distinct from (p_row.kind, p_row.version, p_row.data)
      or v_old.content_type is distinct from p_row.content_type then
      status := 2;
    else
      status := 1;
      insert into onward.delta (inlet, duplicates) values (p_inlet.id, 1);
    end if;
    return;
  end loop;
  if p_row.ukey is not null then
    v_marks := 4;
    loop
      insert into onward.uniq (inlet, ukey, seq) values (p_inlet.id, p_row.ukey, p_row.seq) on conflict do nothing;
      exit when found;
      select m.id into id from onward.uniq u join onward.message m on m.seq = u.seq
        where u.inlet = p_inlet.id and u.ukey = p_row.ukey;
      continue when not found;
      delete from onward.message m where m.seq = p_row.seq;
      insert into onward.delta (inlet, duplicates) values (p_inlet.id, 1);
      status := 1;
      return;
    end loop;
  end if;
  if p_row.size > p_inlet.payload_max then
    status := 4;
  end if;
  while status is null and (depth >= p_inlet.depth_max or bytes + p_row.size > p_inlet.bytes_max) loop
    v_shed := case when p_inlet.sheds then onward.shed_one(p_inlet, p_row.priority, p_now) end;
    if v_shed is null then
      status := 3;
    else
      depth := depth - 1; bytes := bytes - v_shed;
    end if;
  end loop;
  if status is not null then
    delete from onward.message m where m.seq = p_row.seq;
    delete from onward.uniq u where u.inlet = p_inlet.id and u.ukey = p_row.ukey and u.seq = p_row.seq;
    return;
  end if;
  status := 0; id := p_row.id;
  if onward.place_new(p_inlet, p_row, v_marks, p_now) then
    depth := depth + 1; bytes := bytes + p_row.size;
  end if;
end $$;

-- Gives a new message its place; false when it followed a dead one of its key.
create function onward.place_new(p_inlet onward.inlet, p_row onward.message, p_marks int, p_now bigint) returns boolean
language plpgsql as $$
declare v_chain onward.chain;
begin
  if p_inlet.ordering <> 0 and p_row.okey is not null then
    select * into v_chain from onward.chain where inlet = p_inlet.id and okey = p_row.okey;
    if v_chain.aside then
      insert into onward.delta (inlet, accepted, dead) values (p_inlet.id, 1, 1);
      perform onward.set_aside(p_inlet, p_row.seq, p_marks, p_now);
      return false;
    end if;
    if v_chain.head is not null then
      insert into onward.behind (seq, inlet, okey, due, expires_at, size, marks)
        values (p_row.seq, p_inlet.id, p_row.okey, p_row.due_at, p_row.expires_at, p_row.size, p_marks);
      insert into onward.delta (inlet, accepted, bytes) values (p_inlet.id, 1, p_row.size);
      return true;
    end if;
    update onward.chain set head = p_row.seq where inlet = p_inlet.id and okey = p_row.okey;
    p_marks := p_marks | 2;
  end if;
  perform onward.here(p_row.seq, p_row.due_at, p_marks, p_now);
  insert into onward.delta (inlet, accepted, bytes) values (p_inlet.id, 1, p_row.size);
  return true;
end $$;

-- Messages without a fairness key go by turns too, as those of the key ''.
create function onward.make_fair(p_inlet int) returns void language sql as $$
  insert into onward.flow (inlet, fkey, served, idle) values (p_inlet, '', 0, false)
    on conflict (inlet, fkey) do update set idle = false;
  update onward.ready set fkey = '' where inlet = p_inlet and fkey is null;
$$;

create function onward.put_error(p_inlet onward.inlet, p_row onward.message, p_status int) returns text language sql as $$
  select case p_status
    when 2 then format('%s was accepted with other content', p_row.id)
    when 3 then format('%s is full', p_inlet.name)
    else format('has %s bytes, more than %s', p_row.size, p_inlet.payload_max) end
$$;
