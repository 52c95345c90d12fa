//! The instance in the database: made and brought up to date when it is first reached; and what the server is like.

use crate::{
    error::{Effect, from_driver},
    pool::Pool,
    sql,
};
use onward_core::{Error, Result};
use std::sync::Arc;
use tokio_postgres::{Client, Transaction};

/// The version of the definitions that this program brings.
const VERSION: i32 = 1;
/// The oldest program that may go on working with these definitions beside this one.
const OLDEST: i32 = 1;
/// The oldest server that has everything that is used.
const SERVER_MIN: i32 = 130_000;

/// Checks the server and brings the instance up to date.
///
/// # Errors
/// `Unavailable` when it can't be reached; `Unsupported` for a server that is too old or would forget what it
/// confirmed; `Conflict` for an instance that a newer version has made unfit for this one.
pub(crate) async fn open(pool: &Arc<Pool>) -> Result<()> {
    let conn = pool.get().await?;
    check_server(conn.client(), pool.options().volatile).await?;
    conn.done();
    // A transaction needs the connection for itself; it is not kept afterwards.
    let (mut client, connection) = pool
        .options()
        .server
        .connect(tokio_postgres::NoTls)
        .await
        .map_err(|e| from_driver(&e, Effect::None))?;
    let driving = tokio::spawn(connection);
    let updated = update(&mut client, &pool.options().schema).await;
    drop(client);
    driving.abort();
    updated
}

async fn check_server(client: &Client, volatile: bool) -> Result<()> {
    let text = "select current_setting('server_version_num')::int as version, current_setting('fsync') as fsync, \
                current_setting('full_page_writes') as pages, current_setting('synchronous_commit') as commits, \
                pg_is_in_recovery() as standby";
    let row = client.query_typed_one(text, &[]).await.map_err(|e| from_driver(&e, Effect::None))?;
    let version: i32 = row.get("version");
    if version < SERVER_MIN {
        return Err(Error::unsupported(format!("PostgreSQL {version} is older than {SERVER_MIN}"))
            .mend("use 13 or newer"));
    }
    if row.get("standby") {
        return Err(Error::unavailable("this server is a standby").mend("connect to the primary"));
    }
    let weak = [("fsync", "off"), ("pages", "off"), ("commits", "off")];
    let found = weak.iter().find(|(name, value)| row.get::<_, &str>(name) == *value);
    match found {
        Some((name, _)) if !volatile => Err(Error::unsupported(format!(
            "this server may forget what it confirmed: {} is off",
            match *name {
                "pages" => "full_page_writes",
                "commits" => "synchronous_commit",
                other => other,
            }
        ))
        .mend("turn it on, or say `durability=volatile` in the URL")),
        _ => Ok(()),
    }
}

async fn update(client: &mut Client, schema: &str) -> Result<()> {
    let driver = |e: tokio_postgres::Error| from_driver(&e, Effect::Maybe);
    if version_of(client, schema).await.map_err(driver)? == Some((VERSION, OLDEST)) {
        return Ok(());
    }
    let tx = client.transaction().await.map_err(driver)?;
    let lock = format!("select pg_advisory_xact_lock({})", sql::lock_key(schema));
    tx.batch_execute(&lock).await.map_err(driver)?;
    // Another process may have been faster.
    let found = version_in(&tx, schema).await.map_err(driver)?;
    match found {
        Some((_, oldest)) if oldest > VERSION => {
            return Err(Error::conflict(format!(
                "the schema {schema} was made for version {oldest} and later"
            ))
            .mend("use a newer version of this program"));
        }
        // A newer version made it, and keeps what this one uses.
        Some((version, _)) if version >= VERSION => return Ok(()),
        Some(_) => {}
        None => tx.batch_execute(&first(schema)).await.map_err(driver)?,
    }
    tx.commit().await.map_err(driver)
}

/// Everything of a new instance. Existing objects of the schema are left alone.
fn first(schema: &str) -> String {
    format!(
        "create schema if not exists \"{schema}\";\n\
         create table \"{schema}\".instance (version int not null, oldest int not null, made timestamptz not null default now());\n\
         {}\ninsert into \"{schema}\".instance (version, oldest) values ({VERSION}, {OLDEST});",
        sql::definitions(schema)
    )
}

async fn version_of(client: &Client, schema: &str) -> Result<Option<(i32, i32)>, tokio_postgres::Error> {
    match client.query_typed(&exists(schema), &[]).await?.is_empty() {
        true => Ok(None),
        false => {
            let row = client.query_typed_one(&newest(schema), &[]).await?;
            Ok(Some((row.get(0), row.get(1))))
        }
    }
}

async fn version_in(tx: &Transaction<'_>, schema: &str) -> Result<Option<(i32, i32)>, tokio_postgres::Error> {
    match tx.query_typed(&exists(schema), &[]).await?.is_empty() {
        true => Ok(None),
        false => {
            let row = tx.query_typed_one(&newest(schema), &[]).await?;
            Ok(Some((row.get(0), row.get(1))))
        }
    }
}

fn exists(schema: &str) -> String {
    format!("select 1 from pg_tables where schemaname = '{schema}' and tablename = 'instance'")
}

fn newest(schema: &str) -> String {
    format!("select version, oldest from \"{schema}\".instance order by version desc limit 1")
}
