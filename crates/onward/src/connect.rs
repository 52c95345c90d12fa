//! Choosing an engine by its URL.

use crate::{
    Onward,
    folder::{Folder, FolderOptions, Opener, Role},
};
use onward_core::{Durability, Engine, Env, Error, Result};
use onward_env::SystemEnv;
use std::{path::Path, sync::Arc};

/// Schemes of engines that come by feature, and the feature's name.
const BY_FEATURE: [(&str, &str); 13] = [
    ("postgres", "postgres"),
    ("postgresql", "postgres"),
    ("mysql", "mysql"),
    ("mariadb", "mysql"),
    ("sqlite", "sqlite"),
    ("redis", "redis"),
    ("rediss", "redis"),
    ("amqp", "rabbitmq"),
    ("amqps", "rabbitmq"),
    ("kafka", "kafka"),
    ("nats", "nats"),
    ("sqs", "aws"),
    ("http", "http"),
];
const SCHEMES: [&str; 2] = ["memory", "embedded"];
const OPTIONS: [&str; 6] = ["worker", "role", "wait_ms", "durability", "ship", "ship_every_ms"];

/// What a URL asks for, before anything is opened.
#[derive(Debug)]
enum Target {
    Memory,
    Embedded { folder: String, options: FolderOptions },
}

/// Opens a data folder with this machine's clock: made when it is not there, shared with whatever process has it open.
///
/// # Errors
/// Those of [`open_folder`].
pub async fn open(folder: impl AsRef<Path>) -> Result<Onward> {
    let env = SystemEnv::shared();
    Ok(Onward::new(open_folder(folder, FolderOptions::default(), env.clone()).await?, env))
}

/// Opens what a URL names with this machine's clock; see [`engine_at`].
///
/// # Errors
/// Those of [`engine_at`].
pub async fn connect(url: &str) -> Result<Onward> {
    let env = SystemEnv::shared();
    Ok(Onward::new(engine_at(url, env.clone()).await?, env))
}

/// The engine that a URL names: `memory:`, `embedded:DIR` or a plain path.
///
/// Options of `embedded`: `worker=NAME`; `role=any` or `role=host`; `wait_ms=N`, how long a call waits for the next
/// host; `durability=fsync` or `durability=os-buffer`, where this process becomes the host; `ship=DEST` and
/// `ship_every_ms=N`, where it then ships the folder to, and how often. As in `embedded:/var/lib/shop?worker=mailer`.
///
/// # Errors
/// `Invalid` for an unknown scheme or option, with a suggestion; `Unsupported` for an engine that is not built in,
/// with its feature; those of [`Folder::open`].
pub async fn engine_at(url: &str, env: Arc<dyn Env>) -> Result<Arc<dyn Engine>> {
    match parse(url)? {
        Target::Memory => memory(env),
        Target::Embedded { folder, options } => open_folder(folder, options, env).await.map(|f| f as _),
    }
}

/// Opens a data folder with its embedded engine, as its host or as a client of its host.
///
/// # Errors
/// Those of [`Folder::open`]; `Unsupported` when the feature `embedded` is off.
pub async fn open_folder(
    folder: impl AsRef<Path>,
    options: FolderOptions,
    env: Arc<dyn Env>,
) -> Result<Arc<Folder>> {
    let opener = embedded(&options, env.clone())?;
    Folder::open(folder, options, opener, env).await.map(Arc::new)
}

#[cfg(feature = "embedded")]
fn memory(env: Arc<dyn Env>) -> Result<Arc<dyn Engine>> {
    Ok(Arc::new(onward_embedded::MemoryEngine::new(env, onward_embedded::Options::default())))
}

#[cfg(not(feature = "embedded"))]
fn memory(_: Arc<dyn Env>) -> Result<Arc<dyn Engine>> {
    Err(missing("memory", "embedded"))
}

#[cfg(feature = "embedded")]
fn embedded(options: &FolderOptions, env: Arc<dyn Env>) -> Result<Opener> {
    use onward_embedded::{EmbeddedEngine, OpenOptions};
    let shipping = Shipping::of(options)?;
    let options = OpenOptions { durability: options.durability, ..OpenOptions::default() };
    Ok(Arc::new(move |folder| {
        let (options, env, shipping) = (options.clone(), env.clone(), shipping.clone());
        Box::pin(async move {
            // Opening reads the disk and waits for it.
            let (dir, its_env) = (folder.clone(), env.clone());
            let open = move || EmbeddedEngine::open(&dir, options, its_env);
            let opened = tokio::task::spawn_blocking(open).await;
            let engine = opened.map_err(|failed| Error::internal(format!("opening failed: {failed}")))??;
            let engine = Arc::new(engine) as Arc<dyn Engine>;
            if let Some(shipping) = shipping {
                shipping.start(folder, &engine, env);
            }
            Ok(engine)
        })
    }))
}

/// Where a host ships its folder to.
#[cfg(feature = "embedded")]
#[derive(Debug, Clone)]
struct Shipping {
    to: onward_keeping::Destination,
    options: onward_keeping::ShipOptions,
}

#[cfg(feature = "embedded")]
impl Shipping {
    fn of(options: &FolderOptions) -> Result<Option<Self>> {
        let Some(to) = &options.ship else { return Ok(None) };
        let every = std::time::Duration::from_millis(options.ship_every_ms.max(1));
        let options = onward_keeping::ShipOptions { every, ..Default::default() };
        Ok(Some(Self { to: onward_keeping::Destination::open(to)?, options }))
    }

    /// Ships for as long as the engine lives; what goes wrong is told in the journal, and tried again.
    fn start(self, folder: std::path::PathBuf, engine: &Arc<dyn Engine>, env: Arc<dyn Env>) {
        let alive = Arc::downgrade(engine);
        tokio::spawn(async move {
            let told = |passed: Result<onward_keeping::Shipped>| {
                if let Err(error) = passed {
                    tracing::warn!(%error, "the folder is not shipped; tried again");
                }
            };
            let go_on = move || alive.strong_count() > 0;
            let ended = onward_keeping::ship(&folder, &self.to, self.options, env, &told, &go_on).await;
            if let Err(error) = ended {
                tracing::error!(%error, "the folder is shipped no more");
            }
        });
    }
}

#[cfg(not(feature = "embedded"))]
fn embedded(_: &FolderOptions, _: Arc<dyn Env>) -> Result<Opener> {
    Err(missing("embedded", "embedded"))
}

fn missing(scheme: &str, feature: &str) -> Error {
    Error::unsupported(format!("the engine of `{scheme}:` is not built in"))
        .mend(format!("build with the feature `{feature}` of the crate `onward`"))
}

fn parse(url: &str) -> Result<Target> {
    let (rest, query) = match url.split_once('?') {
        Some((rest, query)) if url.contains(':') => (rest, query),
        _ => (url, ""),
    };
    match rest.split_once(':') {
        _ if rest.is_empty() => Err(Error::invalid("is empty").at("the URL").mend("write `embedded:DIR`")),
        None => embedded_target(url, ""),
        Some((scheme, _)) if scheme.contains(['/', '.', '\\']) => embedded_target(url, ""),
        Some(("memory", "")) if query.is_empty() => Ok(Target::Memory),
        Some(("memory", _)) => Err(Error::invalid("takes nothing after the colon").at("`memory:`")),
        Some(("embedded", folder)) => embedded_target(folder, query),
        Some((scheme, _)) => Err(unknown_scheme(scheme)),
    }
}

fn embedded_target(folder: &str, query: &str) -> Result<Target> {
    if folder.is_empty() {
        return Err(Error::invalid("names no folder").at("`embedded:`").mend("write `embedded:DIR`"));
    }
    let mut options = FolderOptions::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        set(&mut options, pair)?;
    }
    Ok(Target::Embedded { folder: folder.into(), options })
}

fn set(options: &mut FolderOptions, pair: &str) -> Result<()> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let wrong =
        |mend: &str| Error::invalid(format!("`{value}` is not right")).at(format!("`{name}`")).mend(mend);
    match (name, value) {
        ("worker", "") => return Err(wrong("give a name")),
        ("worker", worker) => options.worker = worker.into(),
        ("role", "any") => options.role = Role::Any,
        ("role", "host") => options.role = Role::Host,
        ("role", _) => return Err(wrong("use `any` or `host`")),
        ("wait_ms", number) => {
            options.takeover_wait_ms = number.parse().map_err(|_| wrong("use a number of milliseconds"))?;
        }
        ("ship", "") | ("ship_every_ms", "0") => return Err(wrong("name a destination; every 1 ms or more")),
        ("ship", destination) => options.ship = Some(destination.into()),
        ("ship_every_ms", number) => {
            options.ship_every_ms = number.parse().map_err(|_| wrong("use a number of milliseconds"))?;
        }
        ("durability", "fsync") => options.durability = Durability::Fsync,
        ("durability", "os-buffer") => options.durability = Durability::OsBuffer,
        ("durability", _) => return Err(wrong("use `fsync` or `os-buffer`")),
        (unknown, _) => {
            let known = OPTIONS.iter().copied();
            return Err(Error::invalid("is not an option of `embedded:`")
                .at(format!("`{unknown}`"))
                .mend(format!("did you mean `{}`?", nearest(unknown, known))));
        }
    }
    Ok(())
}

fn unknown_scheme(scheme: &str) -> Error {
    if let Some((_, feature)) = BY_FEATURE.iter().find(|(known, _)| *known == scheme) {
        return missing(scheme, feature);
    }
    let known = SCHEMES.iter().copied().chain(BY_FEATURE.iter().map(|(known, _)| *known));
    let near = nearest(scheme, known);
    Error::invalid(format!("`{scheme}:` is no engine"))
        .at("the URL")
        .mend(format!("did you mean `{near}:`? A folder of this name is `./{scheme}:...`"))
}

fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    known.min_by_key(|known| strsim::osa_distance(word, known)).unwrap_or("embedded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_core::ErrorKind;
    use onward_proves::proves;

    fn refused(url: &str) -> Error {
        parse(url).expect_err(url)
    }

    #[test]
    fn a_plain_path_is_a_folder_of_the_embedded_engine() {
        for path in ["data", "./data", "/var/lib/x", "./a:b", "what?not"] {
            assert!(matches!(parse(path), Ok(Target::Embedded { folder, .. }) if folder == path), "{path}");
        }
    }

    #[test]
    fn options_of_a_folder_are_taken() {
        let Ok(Target::Embedded { folder, options }) = parse("embedded:/d?worker=a&role=host&wait_ms=5")
        else {
            panic!("not a folder")
        };
        assert_eq!((folder.as_str(), &*options.worker, options.role), ("/d", "a", Role::Host));
        assert_eq!(options.takeover_wait_ms, 5);
    }

    #[test]
    #[proves("T53")]
    fn unknown_schemes_and_options_are_refused_with_the_nearest_known_one() {
        let cases = [
            ("memroy:", "`memory:`"),
            ("embeded:/d", "`embedded:`"),
            ("embedded:/d?wroker=a", "`worker`"),
            ("embedded:/d?role=boss", "`host`"),
            ("embedded:", "`embedded:DIR`"),
        ];
        for (url, mend) in cases {
            let error = refused(url);
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            assert!(error.mend_text().is_some_and(|text| text.contains(mend)), "{url}: {error}");
        }
        assert_eq!(refused("").kind(), ErrorKind::Invalid);
        assert_eq!(refused("memory:x").kind(), ErrorKind::Invalid);
    }

    #[test]
    #[proves("T49")]
    fn an_engine_that_is_not_built_in_is_unsupported_and_names_its_feature() {
        let error = refused("postgres://localhost/x");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.mend_text().is_some_and(|text| text.contains("feature `postgres`")), "{error}");
    }
}
