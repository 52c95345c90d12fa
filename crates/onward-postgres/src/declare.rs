//! What exists.

use crate::{
    core::Core,
    error::{Effect, Readable},
    ops::one,
    sql::Param,
};
use onward_core::{Error, Inlet, InletConfig, Result, Topology, TopologyChange, TopologyDiff};
use tokio_postgres::types::Type;

impl Core {
    pub(crate) async fn declare(&self, change: TopologyChange) -> Result<TopologyDiff> {
        match change {
            TopologyChange::Queue { name, config, update } => {
                self.declare_queue(&name.to_string(), &config, update).await
            }
            TopologyChange::DropInlet { inlet: inlet @ Inlet::Queue(_), only_if_empty } => {
                let name = inlet.to_string();
                let params: [Param<'_>; 2] = [(&name, Type::TEXT), (&only_if_empty, Type::BOOL)];
                self.call(Effect::Maybe, "drop_inlet", &params).await?;
                Ok(TopologyDiff { dropped: true, ..TopologyDiff::default() })
            }
            _ => Err(Error::unsupported(
                "topics and subscriptions are not in this release of the engine postgres",
            )),
        }
    }

    async fn declare_queue(&self, name: &str, config: &InletConfig, update: bool) -> Result<TopologyDiff> {
        config.check()?;
        let text = serde_json::to_string(config)
            .map_err(|e| Error::invalid(format!("the rules can't be written down: {e}")))?;
        let call = format!("select * from \"{}\".declare_queue($1, $2::jsonb, $3)", self.schema());
        let params: [Param<'_>; 3] = [(&name, Type::TEXT), (&text, Type::TEXT), (&update, Type::BOOL)];
        let rows = self.statement(Effect::Maybe, &call, &params).await?;
        let row = one(&rows)?;
        Ok(TopologyDiff {
            created: row.get("created"),
            changed: row.get("changed"),
            ..TopologyDiff::default()
        })
    }

    pub(crate) async fn topology(&self) -> Result<Topology> {
        let text = format!("select name, config::text, paused from \"{}\".inlet order by id", self.schema());
        let mut topology = Topology::default();
        for row in self.statement(Effect::None, &text, &[]).await? {
            let inlet: Inlet = row.get::<_, &str>("name").parse()?;
            if row.get("paused") {
                topology.paused.push(inlet.clone());
            }
            topology.inlets.push((inlet, config(row.get("config"))?));
        }
        Ok(topology)
    }
}

/// Rules as they were declared. What a newer version has added is left out: it knows what to do about it, we don't.
fn config(text: &str) -> Result<InletConfig> {
    let mut fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).readable("a queue's rules")?;
    let known = serde_json::to_value(InletConfig::default()).readable("the default rules")?;
    fields.retain(|name, _| known.get(name).is_some());
    serde_json::from_value(fields.into()).readable("a queue's rules")
}
