//! The servers that tests of some crates talk to: which are needed, and whether they answer.

use crate::ui::say;
use anyhow::{Result, bail};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// A server that tests may need.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    /// The variable that holds `HOST:PORT` where it isn't the usual one.
    variable: &'static str,
    address: &'static str,
    mend: &'static str,
}

const SERVERS: [Server; 5] = [
    Server {
        name: "PostgreSQL",
        variable: "ONWARD_TEST_POSTGRES",
        address: "127.0.0.1:5432",
        mend: "apt-get install -y postgresql && pg_ctlcluster --skip-systemctl-redirect 15 main start",
    },
    Server {
        name: "MariaDB",
        variable: "ONWARD_TEST_MARIADB",
        address: "127.0.0.1:3306",
        mend: "apt-get install -y mariadb-server && service mariadb start",
    },
    Server {
        name: "Redis",
        variable: "ONWARD_TEST_REDIS",
        address: "127.0.0.1:6379",
        mend: "apt-get install -y redis-server && redis-server --daemonize yes",
    },
    Server {
        name: "RabbitMQ",
        variable: "ONWARD_TEST_RABBITMQ",
        address: "127.0.0.1:5672",
        mend: "apt-get install -y rabbitmq-server && rabbitmq-server -detached",
    },
    Server {
        name: "NATS",
        variable: "ONWARD_TEST_NATS",
        address: "127.0.0.1:4222",
        mend: "apt-get install -y nats-server && nats-server -js &",
    },
];

/// Crate and server: the tests of the one can't run without the other. No crate needs one yet.
const NEEDS: &[(&str, &str)] = &[];

const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Fails with the mend when a server that the tests of `crates` need doesn't answer.
pub(crate) fn require(crates: &[String]) -> Result<()> {
    let needed = |server: &&Server| {
        NEEDS.iter().any(|(name, need)| *need == server.name && crates.iter().any(|c| c == name))
    };
    for server in SERVERS.iter().filter(needed) {
        if !server.answers() {
            bail!("{} does not answer on {}: {}", server.name, server.place(), server.mend);
        }
    }
    Ok(())
}

/// `cargo xtask servers`: says which of them answer here.
pub(crate) fn show() {
    for server in &SERVERS {
        let state = if server.answers() { "present".to_owned() } else { format!("missing: {}", server.mend) };
        say(format!("{:<11} {:<16} {state}", server.name, server.place()));
    }
}

impl Server {
    fn place(&self) -> String {
        std::env::var(self.variable).unwrap_or_else(|_| self.address.to_owned())
    }

    fn answers(&self) -> bool {
        answers(&self.place())
    }
}

fn answers(place: &str) -> bool {
    let addresses = place.to_socket_addrs().into_iter().flatten();
    addresses.into_iter().any(|address| TcpStream::connect_timeout(&address, CONNECT_MAX).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_port_answers_and_a_closed_one_does_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap().to_string();
        assert!(answers(&place));
        drop(listener);
        assert!(!answers(&place));
        assert!(!answers("no address"));
    }

    #[test]
    fn every_need_names_a_server_of_the_table() {
        assert!(NEEDS.iter().all(|(_, need)| SERVERS.iter().any(|server| server.name == *need)));
    }
}
