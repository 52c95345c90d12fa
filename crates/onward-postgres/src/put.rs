//! Enqueueing: messages as arrays, one call for many.

use crate::{
    core::Core,
    error::{Effect, Readable, from_driver},
    sql::{self, Param},
};
use onward_core::{Accepted, Durability, Error, Message, MessageId, Name, Result, Timestamp};
use tokio_postgres::{GenericClient, Row, types::Type};

/// Messages of one queue, column by column.
#[derive(Debug)]
pub(crate) struct Puts {
    queue: String,
    all: bool,
    columns: Columns,
    plain: bool,
    keyed: bool,
}

macro_rules! columns {
    ($($name:ident: $type:ty = $sql:ident;)*) => {
        #[derive(Debug, Default)]
        struct Columns { $($name: Vec<$type>,)* }

        impl Columns {
            fn params(&self) -> Vec<Param<'_>> {
                vec![$((&self.$name, Type::$sql),)*]
            }
        }
    };
}

columns! {
    id: String = TEXT_ARRAY;
    kind: String = TEXT_ARRAY;
    version: i64 = INT8_ARRAY;
    made: i64 = INT8_ARRAY;
    source: String = TEXT_ARRAY;
    correlation: Option<String> = TEXT_ARRAY;
    causation: Option<String> = TEXT_ARRAY;
    headers: Option<Vec<u8>> = BYTEA_ARRAY;
    data: Vec<u8> = BYTEA_ARRAY;
    content_type: Option<String> = TEXT_ARRAY;
    okey: Option<String> = TEXT_ARRAY;
    dkey: Option<String> = TEXT_ARRAY;
    fkey: Option<String> = TEXT_ARRAY;
    ukey: Option<String> = TEXT_ARRAY;
    priority: i16 = INT2_ARRAY;
    due: Option<i64> = INT8_ARRAY;
    delay: Option<i64> = INT8_ARRAY;
    expiry: Option<i64> = INT8_ARRAY;
    life: Option<i64> = INT8_ARRAY;
    edition: i64 = INT8_ARRAY;
    size: i32 = INT4_ARRAY;
}

impl Puts {
    /// All or nothing when `all`, otherwise each for itself. `now` is the caller's clock: what is sent are spans.
    pub(crate) fn new<'a>(
        queue: &Name,
        messages: impl Iterator<Item = &'a Message>,
        all: bool,
        now: Timestamp,
    ) -> Self {
        let mut puts =
            Self { queue: queue.to_string(), all, columns: Columns::default(), plain: true, keyed: false };
        messages.for_each(|message| puts.add(message, now));
        puts
    }

    fn add(&mut self, message: &Message, now: Timestamp) {
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        let key = |key: &Option<onward_core::Key>| key.as_ref().map(|k| k.as_str().to_owned());
        let ahead =
            |time: Timestamp| time.as_micros().saturating_sub(now.as_micros()).clamp(-SPAN_MAX, SPAN_MAX);
        self.plain &= message.unique_key.is_none() && message.fairness_key.is_none();
        self.keyed |= message.order_key.is_some();
        let c = &mut self.columns;
        c.id.push(message.id.as_str().into());
        c.kind.push(message.kind.as_ref().into());
        c.version.push(message.version.into());
        c.made.push(message.timestamp.as_micros());
        c.source.push(message.source.as_ref().into());
        c.correlation.push(text(&message.correlation_id));
        c.causation.push(text(&message.causation_id));
        c.headers.push(headers(message));
        c.data.push(message.data.as_bytes().to_vec());
        c.content_type.push((!message.data.is_json()).then(|| message.data.content_type().to_owned()));
        c.okey.push(key(&message.order_key));
        c.dkey.push(key(&message.dedup_key));
        c.fkey.push(key(&message.fairness_key));
        c.ukey.push(key(&message.unique_key));
        c.priority.push(message.priority.get().into());
        c.due.push(message.due.map(Timestamp::as_micros));
        c.delay.push(message.due.map(ahead).filter(|ahead| *ahead > 0));
        c.expiry.push(message.expiry.map(Timestamp::as_micros));
        c.life.push(message.expiry.map(ahead));
        c.edition.push(message.edition.into());
        c.size.push(i32::try_from(message.size()).unwrap_or(i32::MAX));
    }

    fn params<'a>(&'a self, defaults: &'a Option<String>) -> Vec<Param<'a>> {
        let mut params: Vec<Param<'a>> =
            vec![(&self.queue, Type::TEXT), (defaults, Type::TEXT), (&self.all, Type::BOOL)];
        params.extend(self.columns.params());
        params.push((&self.plain, Type::BOOL));
        params.push((&self.keyed, Type::BOOL));
        params
    }

    /// What became of each, told by what the server answered beside the usual.
    fn answers(&self, rows: &[Row], durability: Durability) -> Result<Vec<Result<Accepted>>> {
        let accepted = |id: &String| Accepted {
            id: MessageId::try_from(id.as_str()).expect("it was an id a moment ago"),
            duplicate: false,
            declared: false,
            position: None,
            durability,
        };
        let mut answers: Vec<Result<Accepted>> = self.columns.id.iter().map(|id| Ok(accepted(id))).collect();
        for row in rows {
            let (place, status): (i32, i32) = (row.get("n"), row.get("status"));
            let at = usize::try_from(place - 1).unwrap_or(0);
            match (status, answers.get_mut(at)) {
                (9, _) => {
                    if let Some(Ok(first)) = answers.first_mut() {
                        first.declared = true;
                    }
                }
                (1, Some(answer)) => {
                    let id: String = row.get("id");
                    let id = MessageId::try_from(id).readable("a message's id")?;
                    *answer = Ok(Accepted { id, duplicate: true, ..accepted(&self.columns.id[at]) });
                }
                (status, Some(answer)) => *answer = Err(self.refusal(status, at)),
                (_, None) => return Err(Error::internal(format!("the server answered for message {place}"))),
            }
        }
        Ok(answers)
    }

    fn refusal(&self, status: i32, at: usize) -> Error {
        let (id, queue) = (&self.columns.id[at], &self.queue);
        match status {
            2 => Error::conflict(format!("{id} was accepted with other content")),
            3 => Error::full(format!("{queue} is full"))
                .mend("wait until something is done, or raise its bounds"),
            _ => Error::invalid(format!("{id} has {} bytes, more than {queue} takes", self.columns.size[at]))
                .at("`data`")
                .mend("put it into object storage and send a reference (claim check)"),
        }
    }
}

fn text(schema: &str, count: usize) -> String {
    sql::call(schema, "put", count).replace("$2,", "$2::jsonb,")
}

/// The longest span that is sent, in microseconds: 10,000 years.
const SPAN_MAX: i64 = 315_000_000_000_000_000;

/// Header names and values as JSON; none where there are none.
pub(crate) fn headers(message: &Message) -> Option<Vec<u8>> {
    let write = || serde_json::to_vec(&message.headers).expect("a map of strings always serialises");
    (!message.headers.is_empty()).then(write)
}

impl Core {
    /// Puts messages in as a transaction of its own.
    pub(crate) async fn put(&self, puts: Puts) -> Result<Vec<Result<Accepted>>> {
        let params = puts.params(&self.defaults);
        let rows = self.statement(Effect::Maybe, &text(self.schema(), params.len()), &params).await?;
        self.hub.said(&puts.queue);
        puts.answers(&rows, self.capabilities.durability)
    }

    /// Puts messages in on a connection whose transaction somebody else ends.
    pub(crate) async fn put_on<C: GenericClient + Sync>(
        &self,
        on: &C,
        puts: Puts,
    ) -> Result<Vec<Result<Accepted>>> {
        let params = puts.params(&self.defaults);
        let rows = on.query_typed(&text(self.schema(), params.len()), &params).await;
        let rows = rows.map_err(|error| from_driver(&error, Effect::Maybe))?;
        puts.answers(&rows, self.capabilities.durability)
    }
}
