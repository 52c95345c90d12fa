//! What a URL says: where the server is, and how this instance is to be used.

use onward_core::{Durability, Error, Result};
use std::{str::FromStr, time::Duration};
use tokio_postgres::config::{Host, SslMode};

const SCHEMA_BYTES_MAX: usize = 48;
const OWN: [&str; 6] = ["schema", "durability", "pool", "timeout_ms", "listen", "strict"];

/// How an engine reaches its server and its schema. The text form is a URL of PostgreSQL with some more parameters.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    pub(crate) server: tokio_postgres::Config,
    pub(crate) schema: String,
    pub(crate) volatile: bool,
    pub(crate) pool: usize,
    pub(crate) timeout: Duration,
    pub(crate) listen: bool,
    pub(crate) strict: bool,
}

impl PostgresOptions {
    /// From a URL, as in `postgres://user@host/database?schema=shop`.
    ///
    /// Parameters beside those of PostgreSQL: `schema=NAME` (default `onward`), the instance; `durability=volatile`
    /// accepts a server that may forget what it confirmed; `pool=N`, connections at most (default 8);
    /// `timeout_ms=N`, how long a call may take (default 10000); `listen=off` does without LISTEN; `strict=true`
    /// declares no queue by itself.
    ///
    /// # Errors
    /// `Invalid`, naming the parameter.
    pub fn parse(url: &str) -> Result<Self> {
        let (rest, query) = url.split_once('?').unwrap_or((url, ""));
        let (own, theirs): (Vec<&str>, Vec<&str>) =
            query.split('&').filter(|pair| !pair.is_empty()).partition(|pair| OWN.contains(&name_of(pair)));
        let theirs = if theirs.is_empty() { rest.to_owned() } else { format!("{rest}?{}", theirs.join("&")) };
        let server = tokio_postgres::Config::from_str(&theirs).map_err(|e| {
            Error::invalid(format!("is not a URL of PostgreSQL: {e}{}", cause_of(&e))).at("the URL").mend(
                format!("write `postgres://user@host/database`; its own options are {}", OWN.join(", ")),
            )
        })?;
        let mut options = Self::new(server)?;
        own.iter()
            .try_for_each(|pair| options.set(name_of(pair), pair.split_once('=').map_or("", |(_, v)| v)))?;
        Ok(options)
    }

    /// The defaults for a server.
    ///
    /// # Errors
    /// `Unsupported` where the server is to be reached by TLS only, which is not built in.
    pub fn new(mut server: tokio_postgres::Config) -> Result<Self> {
        if server.get_ssl_mode() == SslMode::Require {
            return Err(Error::unsupported("TLS is not built in").at("`sslmode`").mend(
                "reach the server by a Unix socket, a private network or a local proxy that speaks TLS",
            ));
        }
        if server.get_application_name().is_none() {
            server.application_name("onward");
        }
        if server.get_connect_timeout().is_none() {
            server.connect_timeout(Duration::from_secs(5));
        }
        Ok(Self {
            server,
            schema: "onward".into(),
            volatile: false,
            pool: 8,
            timeout: Duration::from_secs(10),
            listen: true,
            strict: false,
        })
    }

    /// The instance's schema.
    ///
    /// # Errors
    /// `Invalid` unless it is 1 to 48 of `a-z 0-9 _`, beginning with a letter.
    pub fn schema(mut self, name: &str) -> Result<Self> {
        self.set("schema", name)?;
        Ok(self)
    }

    /// The durability that a receipt means.
    pub(crate) fn durability(&self) -> Durability {
        if self.volatile { Durability::Memory } else { Durability::Fsync }
    }

    /// Where the server is, for messages to people; never the password.
    pub(crate) fn place(&self) -> String {
        let host = match self.server.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".into(),
        };
        let port = self.server.get_ports().first().copied().unwrap_or(5432);
        format!("{host}:{port}/{} (schema {})", self.server.get_dbname().unwrap_or(""), self.schema)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let wrong = |mend: &str| {
            Error::invalid(format!("`{value}` is not right")).at(format!("`{name}`")).mend(mend.to_owned())
        };
        match (name, value) {
            ("schema", schema) if is_schema(schema) => self.schema = schema.into(),
            ("schema", _) => return Err(wrong("use 1 to 48 of a-z, 0-9 and _, beginning with a letter")),
            ("durability", "volatile") => self.volatile = true,
            ("durability", "fsync") => self.volatile = false,
            ("durability", _) => return Err(wrong("use `fsync` or `volatile`")),
            ("pool", number) => match number.parse() {
                Ok(number @ 2..=1_000) => self.pool = number,
                _ => return Err(wrong("use 2 to 1000 connections")),
            },
            ("timeout_ms", number) => match number.parse() {
                Ok(number @ 10..=600_000) => self.timeout = Duration::from_millis(number),
                _ => return Err(wrong("use 10 to 600000 milliseconds")),
            },
            ("listen", "on") => self.listen = true,
            ("listen", "off") => self.listen = false,
            ("listen", _) => return Err(wrong("use `on` or `off`")),
            ("strict", "true") => self.strict = true,
            ("strict", "false") => self.strict = false,
            _ => return Err(wrong("use `true` or `false`")),
        }
        Ok(())
    }
}

fn name_of(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}

fn is_schema(name: &str) -> bool {
    name.len() <= SCHEMA_BYTES_MAX
        && name.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn cause_of(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default()
}
