-- What exists, and small changes that a commit may hold.

-- Declares a queue; `changed` names the fields that an update changed.
create function onward.declare_queue(p_name text, p_config jsonb, p_update boolean, out created boolean, out changed text[])
language plpgsql as $$
declare v_inlet onward.inlet; v_before smallint;
begin
  created := (onward.inlet_of(p_name, p_config)).declared;
  changed := '{}';
  if created then return; end if;
  select * into v_inlet from onward.inlet where name = p_name for update;
  changed := array(select key from jsonb_each(p_config) n
    where v_inlet.config->n.key is distinct from n.value order by 1);
  if changed = '{}' then return; end if;
  if not p_update then
    raise exception '% exists with other content: %', p_name, array_to_string(changed, ', ') using errcode = 'OW002';
  end if;
  if 'order' = any (changed) and exists (
      select 1 from onward.message m where m.inlet = v_inlet.id and m.okey is not null
        and not exists (select 1 from onward.done d where d.seq = m.seq)) then
    raise exception '% holds messages with order keys: its order can be changed when they are done', p_name
      using errcode = 'OW002';
  end if;
  update onward.inlet set config = config || p_config where id = v_inlet.id;
end $$;

create function onward.pause(p_name text, p_paused boolean) returns void language plpgsql as $$
begin
  update onward.inlet set paused = p_paused where name = p_name;
  if not found then raise exception '% does not exist', p_name using errcode = 'OW001'; end if;
  if not p_paused then perform onward.tell((select id from onward.inlet where name = p_name), onward.now_us()); end if;
end $$;

-- Takes the locks of records in one order for everybody.
create function onward.lock_keys(p_keys text[]) returns void language sql as $$
  select pg_advisory_xact_lock(h) from (
    select distinct hashtextextended(k, @lock@) as h from unnest(p_keys) k order by 1) l
$$;

create function onward.records(p_keys text[], p_prefix text, p_after text, p_most int)
returns table (key text, value bytea, revision bigint, expires bigint, written bigint) language plpgsql stable as $$
declare v_now bigint := onward.now_us();
begin
  if p_keys is not null then
    return query select r.key, r.value, r.revision, r.expires, r.written from unnest(p_keys) with ordinality k(key, n)
      join onward.record r on r.key = k.key where r.expires is null or r.expires > v_now order by k.n;
  else
    return query select r.key, r.value, r.revision, r.expires, r.written from onward.record r
      where r.key >= p_prefix and (p_after is null or r.key > p_after) and starts_with(r.key, p_prefix)
        and (r.expires is null or r.expires > v_now) order by r.key limit p_most;
  end if;
end $$;

-- A dead letter, locked, for an edit of it.
create function onward.dead_letter(p_name text, p_id text) returns bigint language plpgsql as $$
declare v_inlet onward.inlet := onward.must_inlet(p_name); v_seq bigint;
begin
  select d.seq into v_seq from onward.dead d join onward.message m on m.seq = d.seq
    where m.inlet = v_inlet.id and m.id = p_id order by d.seq limit 1 for update of d;
  if not found then raise exception '% is no dead letter of %', p_id, p_name using errcode = 'OW001'; end if;
  return v_seq;
end $$;

create function onward.edit(p_seq bigint, p_data bytea, p_type text, p_kind text, p_version bigint, p_headers bytea,
  p_size int, p_original bytea) returns bigint language sql as $$
  update onward.message set data = p_data, content_type = p_type, kind = p_kind, version = p_version, headers = p_headers,
    size = p_size, original = coalesce(original, p_original), edition = edition + 1
  where seq = p_seq returning edition
$$;
