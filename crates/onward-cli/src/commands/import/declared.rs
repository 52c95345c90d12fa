//! Lines that declare something, and records: taken one at a time, unless it is there already.

use super::{Fate, Importer};
use bytes::Bytes;
use onward_core::{
    Error, ErrorKind, Filter, Inlet, InletConfig, Name, Op, RecordExpect, RecordKey, RecordQuery, Result,
    Schedule, StartFrom, Timestamp, TopicConfig, TopologyChange,
};

impl Importer<'_> {
    async fn knows(&self, inlet: &Inlet) -> Result<bool> {
        Ok(self.engine.topology().await?.inlets.iter().any(|(known, _)| known == inlet))
    }

    async fn commit(&self, op: Op) -> Result<()> {
        self.engine.commit(self.engine.prepare(vec![op])?).await.map(drop)
    }

    /// Makes an inlet that is not there yet.
    async fn inlet(&self, inlet: Inlet, change: TopologyChange, paused: bool) -> Result<Fate> {
        if self.knows(&inlet).await? {
            return Ok(Fate::Unchanged);
        }
        self.engine.declare(change).await?;
        if paused {
            self.commit(Op::Pause { inlet }).await?;
        }
        Ok(Fate::Accepted)
    }

    pub(super) async fn queue(&self, name: Name, config: InletConfig, paused: bool) -> Result<Fate> {
        let (inlet, config) = (Inlet::Queue(name.clone()), Box::new(config));
        self.inlet(inlet, TopologyChange::Queue { name, config, update: false }, paused).await
    }

    pub(super) async fn topic(&self, name: Name, config: TopicConfig) -> Result<Fate> {
        if self.engine.topology().await?.topics.iter().any(|(known, _)| *known == name) {
            return Ok(Fate::Unchanged);
        }
        self.engine.declare(TopologyChange::Topic { name, config, update: false }).await?;
        Ok(Fate::Accepted)
    }

    /// It begins with the next message: its line stands before the first one that it had not finished.
    pub(super) async fn subscription(
        &self,
        inlet: Inlet,
        config: InletConfig,
        filter: Filter,
        paused: bool,
    ) -> Result<Fate> {
        let Inlet::Subscription { topic, name } = inlet.clone() else {
            return Err(Error::invalid("names no subscription")
                .at("`subscription`")
                .mend("as in `topic:name`"));
        };
        let (config, start) = (Box::new(config), StartFrom::Now);
        let change = TopologyChange::Subscription { topic, name, config, filter, start, update: false };
        self.inlet(inlet, change, paused).await
    }

    pub(super) async fn schedule(&self, name: Name, schedule: Box<Schedule>) -> Result<Fate> {
        let topology = self.engine.topology().await?;
        match topology.schedules.iter().find(|view| view.name == name) {
            Some(view) if view.schedule == *schedule => Ok(Fate::Unchanged),
            Some(_) => Err(Error::already_exists("another schedule of this name is there")
                .at(format!("schedule `{name}`"))
                .mend("remove one of them, or rename one")),
            None => {
                self.commit(Op::PutSchedule { name, schedule: Some(schedule) }).await?;
                Ok(Fate::Accepted)
            }
        }
    }

    pub(super) async fn record(
        &self,
        key: &RecordKey,
        value: Bytes,
        expires: Option<Timestamp>,
    ) -> Result<Fate> {
        let now = self.context.env.now();
        if expires.is_some_and(|expires| expires <= now) {
            return Ok(Fate::Unchanged);
        }
        let ttl = expires.map(|expires| expires.since(now));
        let put = Op::PutRecord { key: key.clone(), value: value.clone(), expect: RecordExpect::Absent, ttl };
        match self.commit(put).await {
            Ok(()) => Ok(Fate::Accepted),
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists) => {
                let found = self.engine.get_records(RecordQuery::Keys(vec![key.clone()])).await?;
                let same = found.items.first().is_some_and(|record| record.value == value);
                if same { Ok(Fate::Unchanged) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }
}
