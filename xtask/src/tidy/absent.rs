//! What the project does without, in one table with the reasons.

use super::Finding;
use super::files::File;
use super::tokens::{Kind, Mention, mentions};
use anyhow::Result;

/// What must not be mentioned.
#[derive(Debug)]
enum What {
    /// A path that ends so.
    Ends(&'static str),
    /// A path into this crate.
    Crate(&'static str),
    Macro(&'static str),
    /// A call of a function or method of this name inside test code.
    CallInTest(&'static str),
    Attribute(&'static str),
    AttributeWithoutReason(&'static str),
}

/// One invariant of absence: what, where it is allowed nevertheless, why, and what to do instead.
struct Absence {
    what: &'static [What],
    except: &'static [&'static str],
    /// Where it holds: a path prefix, empty for everywhere.
    within: &'static str,
    why: &'static str,
    mend: &'static str,
}

use What::{Attribute, AttributeWithoutReason, CallInTest, Crate, Ends, Macro};

/// Where the real clock and the machine's randomness are at home.
const REAL: &[&str] = &["crates/onward-env/", "crates/onward-bench/", "xtask/", "/benches/"];

const ABSENCES: &[Absence] = &[
    Absence {
        what: &[
            Ends("SystemTime::now"),
            Ends("Instant::now"),
            Ends("Utc::now"),
            Ends("Zoned::now"),
            Ends("Timestamp::now"),
        ],
        except: REAL,
        within: "",
        why: "time that isn't asked from `Env` can't be simulated",
        mend: "take an `onward_core::Env` and ask its `now` or `monotonic`",
    },
    Absence {
        what: &[
            Ends("thread::sleep"),
            Ends("time::sleep"),
            Ends("time::sleep_until"),
            Ends("time::timeout"),
            Ends("time::timeout_at"),
            Ends("time::interval"),
            Ends("time::interval_at"),
        ],
        except: REAL,
        within: "",
        why: "waiting that isn't asked from `Env` can't be simulated",
        mend: "wait for a signal, or race with `onward_core::Env::sleep`",
    },
    Absence {
        what: &[
            Crate("rand"),
            Crate("fastrand"),
            Crate("getrandom"),
            Ends("Uuid::new_v4"),
            Ends("Uuid::now_v7"),
        ],
        except: REAL,
        within: "",
        why: "a run with the same seed must be the same run",
        mend: "draw from `onward_core::Env`",
    },
    Absence {
        what: &[CallInTest("sleep"), CallInTest("sleep_ms"), CallInTest("sleep_until")],
        // A kill at a random moment waits for one; a refused call is repeated after a pause; a drill ships at its pace. None waits
        // for a result.
        except: &[
            "crates/onward-env/",
            "crates/onward-sim/",
            "crates/onward-embedded/tests/kill.rs",
            "crates/onward-keeping/tests/drill.rs",
            "crates/onward/tests/processes.rs",
        ],
        within: "",
        why: "a test that sleeps is slow when all is well and wrong when the machine is slow",
        mend: "wait for the condition through the API, use a signal, or move the simulated clock",
    },
    Absence {
        what: &[Macro("todo"), Macro("unimplemented"), Macro("dbg")],
        except: &[],
        within: "",
        why: "what has landed is whole, or says as a typed error what it can't do",
        mend: "write it, or answer with an `Unsupported` error",
    },
    Absence {
        what: &[Attribute("ignore")],
        except: &[],
        within: "",
        why: "a test that never runs shows nothing and looks as if it did",
        mend: "make it short enough to run, or a command of its own",
    },
    Absence {
        what: &[AttributeWithoutReason("allow"), AttributeWithoutReason("expect")],
        except: &[],
        within: "",
        why: "an exception is only as good as its reason",
        mend: "add `reason = \"...\"`",
    },
    Absence {
        what: &[Crate("onward_embedded"), Crate("onward_log")],
        except: &["crates/onward-conformance/src/bin/", "crates/onward-conformance/tests/"],
        within: "crates/onward-conformance/",
        why: "the suite judges every engine by the seam alone",
        mend: "take the engine as `dyn onward_core::Engine`; make it in the suite's binary",
    },
];

/// A text that stands in no file, whatever its kind.
struct Text {
    text: &'static str,
    /// Only at the start of a path or word, not in the middle of one.
    at_start: bool,
    mend: &'static str,
}

const TEXTS: &[Text] = &[
    Text {
        text: concat!("FIX", "ME"),
        at_start: false,
        mend: "mend it, or write down in docs/ what is not there",
    },
    Text {
        text: concat!("/ro", "ot/"),
        at_start: true,
        mend: "name no path of one machine: make it relative",
    },
    Text {
        text: concat!("/ho", "me/"),
        at_start: true,
        mend: "name no path of one machine: make it relative",
    },
    Text {
        text: concat!("/Us", "ers/"),
        at_start: true,
        mend: "name no path of one machine: make it relative",
    },
    Text {
        text: concat!("/wo", "rk/"),
        at_start: true,
        mend: "name no path of one machine: make it relative",
    },
];

pub(super) fn check(files: &[File]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !file.path.ends_with("Cargo.lock")) {
        findings.extend(texts(file));
        if file.is_rust() {
            match mentions(&file.text, file.is_test()) {
                Some(mentions) => {
                    findings.extend(mentions.iter().filter_map(|mention| absent(file, mention)))
                }
                None => {
                    findings.push(Finding::new(&file.path, 1, "this is no Rust", "mend what doesn't parse"))
                }
            }
        }
    }
    Ok(findings)
}

fn absent(file: &File, mention: &Mention) -> Option<Finding> {
    let applies = |absence: &&Absence| {
        file.path.starts_with(absence.within)
            && !absence.except.iter().any(|place| lies_in(&file.path, place))
            && absence.what.iter().any(|what| what.is(mention))
    };
    let absence = ABSENCES.iter().find(applies)?;
    let what = format!("`{}`: {}", mention.name, absence.why);
    Some(Finding::new(&file.path, mention.line, what, absence.mend))
}

/// `place` is a path prefix, or a folder of any crate when it begins with `/`.
fn lies_in(path: &str, place: &str) -> bool {
    path.starts_with(place) || (place.starts_with('/') && path.contains(place))
}

impl What {
    fn is(&self, mention: &Mention) -> bool {
        let (name, kind) = (mention.name.as_str(), mention.kind);
        let is_name = !matches!(kind, Kind::Attribute(_));
        match self {
            Ends(end) => {
                is_name && name.strip_suffix(end).is_some_and(|head| head.is_empty() || head.ends_with("::"))
            }
            Crate(own) => is_name && name.strip_prefix(own).is_some_and(|rest| rest.starts_with("::")),
            Macro(own) => kind == Kind::Macro && name == *own,
            CallInTest(own) => kind == Kind::Call && mention.in_test && name.rsplit("::").next() == Some(own),
            Attribute(own) => !is_name && name == *own,
            AttributeWithoutReason(own) => kind == Kind::Attribute(false) && name == *own,
        }
    }
}

fn texts(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for text in TEXTS.iter().filter(|text| stands_in(line, text)) {
            findings.push(Finding::new(
                &file.path,
                index + 1,
                format!("`{}` stands here", text.text),
                text.mend,
            ));
        }
    }
    findings
}

fn stands_in(line: &str, text: &Text) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "/._-{}<>$*".contains(c);
    let free = |at: usize| !text.at_start || !line[..at].ends_with(inside);
    line.match_indices(text.text).any(|(at, _)| free(at))
}

#[cfg(test)]
#[path = "absent_tests.rs"]
mod tests;
