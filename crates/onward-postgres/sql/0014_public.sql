-- For triggers, and for programs in other languages: part of the transaction that calls it.

-- The rules of a queue that nobody declared.
create function onward.default_rules() returns jsonb language sql immutable as $$ select '@defaults@'::jsonb $$;

create function onward.must_be_text(p_field text, p_text text) returns void language plpgsql immutable as $$
begin
  if p_text = '' or octet_length(p_text) > 255 or p_text ~ '[[:cntrl:]]' then
    raise exception '%: use 1 to 255 bytes without control characters', p_field using errcode = 'OW004';
  end if;
end $$;

-- Puts one message into a queue and answers its id; of a repeat, the id of the first.
create function onward.enqueue(queue text, type text, data json default 'null', id text default null,
  delay interval default null, order_key text default null, dedup_key text default null, unique_key text default null,
  fairness_key text default null, priority int default 4, correlation_id text default null, source text default 'sql',
  headers json default null)
returns text language plpgsql as $$
#variable_conflict use_variable
declare
  v_id text := coalesce(id, gen_random_uuid()::text); v_data bytea := convert_to(data::text, 'UTF8');
  v_headers bytea := convert_to(headers::text, 'UTF8'); v_now bigint := onward.now_us(); v_told record;
begin
  perform onward.must_be_text(f.field, f.value) from (values ('id', v_id), ('type', type), ('source', source),
    ('order_key', order_key), ('dedup_key', dedup_key), ('unique_key', unique_key), ('fairness_key', fairness_key),
    ('correlation_id', correlation_id)) f(field, value) where f.value is not null;
  if queue !~ '^([a-z0-9][a-z0-9._-]{0,119}/)?[a-z0-9][a-z0-9._-]{0,119}$' or type is null or data is null
    or priority not between 0 and 9 then
    raise exception 'queue, type, data or priority is not right' using errcode = 'OW004',
      hint = 'a queue is named by a-z, 0-9, `.`, `_` and `-`; priorities go from 0 to 9';
  end if;
  for v_told in select * from onward.put(regexp_replace(queue, '^default/', ''), onward.default_rules(), true, array[v_id],
      array[type], array[1::bigint], array[v_now], array[source], array[correlation_id], array[null::text], array[v_headers],
      array[v_data], array[null::text], array[order_key], array[dedup_key], array[fairness_key], array[unique_key],
      array[priority::smallint], array[case when delay is not null then v_now + (extract(epoch from delay) * 1000000)::bigint end],
      array[(extract(epoch from delay) * 1000000)::bigint], array[null::bigint], array[null::bigint], array[1::bigint],
      array[octet_length(v_data) + coalesce((select sum(octet_length(h.key) + octet_length(h.value))
        from json_each_text(headers) h), 0)::int],
      fairness_key is null and unique_key is null, order_key is not null) loop
    if v_told.status = 1 then return v_told.id; end if;
  end loop;
  return v_id;
end $$;
