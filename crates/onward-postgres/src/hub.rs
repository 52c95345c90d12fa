//! Who waits here for work, and how they are woken: by what this process does, by LISTEN, and by one look a second.

use crate::{core::Core, error::Effect, pool::BACKOFF_MAX, sql::Param};
use futures::{Stream, stream};
use onward_core::{BoxStream, Env, Hint, Inlet, Interest, Result};
use onward_env::SystemEnv;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    sync::{Notify, broadcast, broadcast::error::RecvError},
    task::JoinHandle,
};
use tokio_postgres::{AsyncMessage, NoTls, types::Type};

/// The longest time between two looks; also the rate of looks of an idle process.
const BEAT: Duration = Duration::from_secs(1);
/// The shortest.
const BEAT_MIN: Duration = Duration::from_millis(5);
/// How long this process counts as waiting after a look.
const SLEEP_US: i64 = 3_000_000;
/// Most hints that wait for one listener; beyond it the oldest are dropped, and it looks.
const HINTS_MAX: usize = 1_024;

/// Hints of one engine.
#[derive(Debug)]
pub(crate) struct Hub {
    hints: broadcast::Sender<Hint>,
    waiting: Arc<Mutex<BTreeMap<String, usize>>>,
    poke: Notify,
    process: String,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// One who waits for work of some inlets.
#[derive(Debug)]
pub(crate) struct Listening {
    hints: broadcast::Receiver<Hint>,
    inlets: Vec<Inlet>,
    registered: Vec<String>,
    waiting: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Hub {
    pub(crate) fn new(env: &dyn Env) -> Self {
        Self {
            hints: broadcast::channel(HINTS_MAX).0,
            waiting: Arc::default(),
            poke: Notify::new(),
            process: format!("{:016x}{:016x}", env.random(), SystemEnv.random()),
            tasks: Mutex::default(),
        }
    }

    /// Something came to an inlet.
    pub(crate) fn said(&self, inlet: &str) {
        if let Ok(inlet) = inlet.parse() {
            self.tell(Hint::Inlet(inlet));
        }
    }

    /// Something changed, and when what comes next is due may have changed with it.
    pub(crate) fn said_somewhere(&self) {
        self.tell(Hint::Somewhere);
        if !self.waiting.lock().is_empty() {
            self.poke.notify_one();
        }
    }

    fn tell(&self, hint: Hint) {
        // Nobody listens: then nobody needs to hear.
        let _ = self.hints.send(hint);
    }

    /// Listens for these inlets; `register` has the server told that somebody waits.
    pub(crate) fn listen(&self, names: &[String], register: bool) -> Listening {
        let registered = if register { names.to_vec() } else { Vec::new() };
        if register {
            let mut waiting = self.waiting.lock();
            registered.iter().for_each(|name| *waiting.entry(name.clone()).or_default() += 1);
            drop(waiting);
            self.poke.notify_one();
        }
        Listening {
            hints: self.hints.subscribe(),
            inlets: names.iter().filter_map(|name| name.parse().ok()).collect(),
            registered,
            waiting: self.waiting.clone(),
        }
    }

    /// Hints for somebody outside.
    pub(crate) fn watch(&self, interest: Interest) -> BoxStream<Hint> {
        Box::pin(watching(self.hints.subscribe(), interest))
    }

    /// Begins to look, and to listen where that is wanted.
    pub(crate) fn start(core: &Arc<Core>) {
        let mut tasks = core.hub.tasks.lock();
        tasks.push(tokio::spawn(look(Arc::downgrade(core))));
        if core.options().listen {
            tasks.push(tokio::spawn(hear(Arc::downgrade(core))));
        }
    }

    pub(crate) fn stop(&self) {
        self.tasks.lock().drain(..).for_each(|task| task.abort());
        self.tell(Hint::Somewhere);
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Listening {
    /// Completes when there may be work.
    pub(crate) async fn next(&mut self) {
        loop {
            match self.hints.recv().await {
                Ok(Hint::Inlet(inlet)) if !self.inlets.contains(&inlet) => {}
                Ok(Hint::Stream(_)) => {}
                Ok(_) | Err(RecvError::Lagged(_)) => return,
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock();
        for name in &self.registered {
            if let Some(count) = waiting.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    waiting.remove(name);
                }
            }
        }
    }
}

fn watching(hints: broadcast::Receiver<Hint>, interest: Interest) -> impl Stream<Item = Hint> {
    stream::unfold((hints, interest), |(mut hints, interest)| async move {
        loop {
            let hint = match hints.recv().await {
                Ok(hint) if concerns(&hint, &interest) => hint,
                Ok(_) => continue,
                Err(RecvError::Lagged(_)) => Hint::Somewhere,
                Err(RecvError::Closed) => return None,
            };
            return Some((hint, (hints, interest)));
        }
    })
}

fn concerns(hint: &Hint, interest: &Interest) -> bool {
    match (hint, interest) {
        (Hint::Somewhere, _) | (_, Interest::Everything) => true,
        (Hint::Inlet(inlet), Interest::Inlets(inlets) | Interest::Dead(inlets)) => inlets.contains(inlet),
        (Hint::Stream(stream), Interest::Stream(wanted)) => stream == wanted,
        _ => false,
    }
}

/// Looks once a second, or when something is due: one call for all who wait here, and the upkeep for everybody.
async fn look(core: Weak<Core>) {
    loop {
        let Some(alive) = core.upgrade() else { return };
        let pause = alive.beat().await.unwrap_or(BEAT);
        let env = alive.env.clone();
        let poked = alive.hub.poke.notified();
        tokio::select! {
            () = env.sleep(pause) => {}
            () = poked => env.sleep(BEAT_MIN).await,
        }
    }
}

impl Core {
    async fn beat(&self) -> Result<Duration> {
        let names: Vec<String> = self.hub.waiting.lock().keys().cloned().collect();
        let sleep = (self.options().listen && !names.is_empty()).then_some(SLEEP_US);
        let params: [Param<'_>; 4] = [
            (&self.hub.process, Type::TEXT),
            (&names, Type::TEXT_ARRAY),
            (&sleep, Type::INT8),
            (&true, Type::BOOL),
        ];
        let mut pause = BEAT;
        for row in self.call(Effect::None, "beat", &params).await? {
            if row.get("ready") {
                self.hub.said(row.get("name"));
            }
            if let Some(due) = row.get::<_, Option<i64>>("due") {
                let ahead = due.saturating_sub(row.get("now")).max(0) as u64;
                pause = pause.min(Duration::from_micros(ahead).max(BEAT_MIN));
            }
        }
        Ok(pause)
    }
}

/// Listens on a connection of its own, and makes a new one whenever it breaks.
async fn hear(core: Weak<Core>) {
    loop {
        let Some(alive) = core.upgrade() else { return };
        let (server, hints) = (alive.options().server.clone(), alive.hub.hints.clone());
        let channel = format!("listen \"onward_{}\"", alive.schema());
        drop(alive);
        if let Err(error) = hear_once(server, &channel, hints).await {
            tracing::debug!(%error, "LISTEN ended; looking goes on");
        }
        SystemEnv.sleep(BACKOFF_MAX).await;
    }
}

async fn hear_once(
    server: tokio_postgres::Config,
    channel: &str,
    hints: broadcast::Sender<Hint>,
) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = server.connect(NoTls).await?;
    let reading = async move {
        loop {
            match std::future::poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(said))) => {
                    let hint = said.payload().parse().map_or(Hint::Somewhere, Hint::Inlet);
                    let _ = hints.send(hint);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            }
        }
    };
    let asking = async {
        client.batch_execute(channel).await?;
        std::future::pending::<Result<(), tokio_postgres::Error>>().await
    };
    tokio::select! {
        ended = reading => ended,
        ended = asking => ended,
    }
}
