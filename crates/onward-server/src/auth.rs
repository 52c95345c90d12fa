//! Tokens and what they allow: hashed at rest, compared by hash, scoped by action and name.

use crate::problem::{Answer, Refusal};
use axum::http::{HeaderMap, header};
use onward_core::{Env, Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{collections::HashMap, fmt, sync::Arc};

/// Random bytes of a token.
pub const TOKEN_BYTES: usize = 32;
const PREFIX: &str = "onward_";

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Enqueue, submit jobs, publish, append.
    Publish,
    /// Lease, extend, settle.
    Work,
    /// Look: messages, numbers, topology.
    Read,
    /// Redrive, edit, purge, cancel, pause, resume.
    Operate,
    /// See private fields in clear.
    Reveal,
    /// Declare and drop; everything else too.
    Admin,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Publish => "publish",
            Self::Work => "work",
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Reveal => "reveal",
            Self::Admin => "admin",
        })
    }
}

/// One token: its name, its hash, and where it allows what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// For logs and the audit.
    pub name: Arc<str>,
    /// The token's hash, as [`token_hash`] makes it. Several for a rotation: any of them is taken.
    pub hashes: Vec<String>,
    /// What it allows.
    pub actions: Vec<Action>,
    /// Where: names of queues and topics with their namespace, `*` at the end for any rest. Empty: everywhere.
    #[serde(default)]
    pub names: Vec<String>,
}

/// All tokens that a server takes. Empty: it asks for none.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    by_hash: HashMap<String, Arc<Grant>>,
}

impl Grants {
    /// Reads a file of tokens: a JSON list of [`Grant`].
    ///
    /// # Errors
    /// `Invalid` with line and column, for hashes that are none, or a grant that allows nothing.
    pub fn from_json(text: &[u8]) -> Result<Self> {
        let grants: Vec<Grant> = serde_json::from_slice(text)
            .map_err(|e| Error::invalid(e.to_string()).at("the file of tokens"))?;
        let mut by_hash = HashMap::new();
        for grant in grants {
            let place = format!("the token `{}`", grant.name);
            let wrong = |what: &str, mend: &str| Error::invalid(what).at(&place).mend(mend);
            if grant.actions.is_empty() {
                return Err(wrong("allows nothing", "give it `actions`"));
            }
            if grant.hashes.is_empty() {
                return Err(wrong("has no hash", "make one with `onward token`"));
            }
            let grant = Arc::new(grant);
            for hash in &grant.hashes {
                if hash.len() != 64 || !hash.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return Err(wrong("has a hash that is none", "make one with `onward token`"));
                }
                by_hash.insert(hash.to_ascii_lowercase(), grant.clone());
            }
        }
        Ok(Self { by_hash })
    }

    /// Whether no token is asked for.
    pub fn is_open(&self) -> bool {
        self.by_hash.is_empty()
    }

    /// Who asks.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Answer<Caller> {
        if self.is_open() {
            return Ok(Caller(None));
        }
        let needed = || {
            let error = Error::unauthorized("there is no known token in the request");
            Refusal::unauthenticated(error.mend("send `Authorization: Bearer TOKEN`"))
        };
        let value =
            headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(needed)?;
        let (scheme, token) = value.split_once(' ').ok_or_else(needed)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(needed());
        }
        // Looked up by its hash: how long that takes says nothing of a token.
        self.by_hash
            .get(&token_hash(token.trim()))
            .cloned()
            .map(|grant| Caller(Some(grant)))
            .ok_or_else(needed)
    }
}

/// Who asks, as the token says; without tokens everybody is the same.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Option<Arc<Grant>>);

impl Caller {
    /// The name for logs, the audit and keys of idempotency.
    pub(crate) fn name(&self) -> &str {
        self.0.as_ref().map_or("anonymous", |grant| &grant.name)
    }

    /// Whether it may do something to a queue, topic or stream, named with its namespace.
    pub(crate) fn may(&self, action: Action, name: &str) -> bool {
        let Some(grant) = &self.0 else { return true };
        let acts = grant.actions.contains(&action) || grant.actions.contains(&Action::Admin);
        acts && (grant.names.is_empty() || grant.names.iter().any(|pattern| covers(pattern, name)))
    }

    /// Refuses where it may not.
    pub(crate) fn require(&self, action: Action, name: &str) -> Answer<()> {
        if self.may(action, name) {
            return Ok(());
        }
        let what = format!("the token `{}` does not allow `{action}` here", self.name());
        Err(Error::unauthorized(what)
            .at(name)
            .mend("ask whoever runs the server for a token that does")
            .into())
    }
}

fn covers(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// A new token. It is shown once; only its hash is kept.
pub fn new_token(env: &dyn Env) -> String {
    let words: [u64; TOKEN_BYTES / 8] = std::array::from_fn(|_| env.random());
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    format!("{PREFIX}{}", hex::encode(bytes))
}

/// What is kept of a token. Tokens are long and random, so one round of SHA-256 is enough.
pub fn token_hash(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(json: &str) -> Grants {
        Grants::from_json(json.as_bytes()).unwrap()
    }

    fn headers(token: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        headers
    }

    #[test]
    fn a_token_allows_its_actions_on_its_names_and_nothing_else() {
        let hash = token_hash("secret");
        let grants = grants(&format!(
            r#"[{{"name":"shop","hashes":["{hash}"],"actions":["publish","read"],"names":["shop/*"]}}]"#
        ));
        let caller = grants.caller(&headers("secret")).unwrap();
        assert!(caller.may(Action::Publish, "shop/emails"));
        assert!(!caller.may(Action::Work, "shop/emails"));
        assert!(!caller.may(Action::Publish, "default/emails"));
        assert!(grants.caller(&headers("other")).is_err());
        assert!(grants.caller(&HeaderMap::new()).is_err());
    }

    #[test]
    fn during_a_rotation_the_old_and_the_new_token_are_both_taken() {
        let (old, new) = (token_hash("old"), token_hash("new"));
        let grants = grants(&format!(r#"[{{"name":"shop","hashes":["{old}","{new}"],"actions":["read"]}}]"#));
        assert!(grants.caller(&headers("old")).is_ok() && grants.caller(&headers("new")).is_ok());
    }

    #[test]
    fn a_file_of_tokens_with_a_fault_is_refused_with_its_place() {
        let wrong = |json: &str| Grants::from_json(json.as_bytes()).unwrap_err().to_string();
        assert!(wrong(r#"[{"name":"a","hashes":["x"],"actions":["read"]}]"#).contains("`a`"));
        assert!(wrong(r#"[{"name":"a","hashes":[],"actions":["read"]}]"#).contains("no hash"));
        assert!(wrong(r#"[{"name":"a","hashs":[],"actions":["read"]}]"#).contains("hashs"));
    }
}
