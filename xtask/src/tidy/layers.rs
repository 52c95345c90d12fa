//! The layers: which crate may be built on which. Arrows only point down.

use super::Finding;
use crate::workspace::{Dependency, Package, Workspace};

/// One crate and the crates of the workspace that it may be built on.
struct Layer {
    name: &'static str,
    on: &'static [&'static str],
    why: &'static str,
}

const ENGINE: &[&str] = &["onward-core", "onward-env"];
const ENGINE_WHY: &str = "an engine knows the seam, and no other engine";

#[rustfmt::skip]
const LAYERS: &[Layer] = &[
    Layer { name: "onward-proves", on: &[], why: "an attribute for tests needs nothing" },
    Layer { name: "onward-core", on: &[], why: "what every crate speaks stands on none" },
    Layer { name: "onward-env", on: &["onward-core"], why: "the real clock fills the seam of the core" },
    Layer { name: "onward-log", on: &["onward-core"], why: "it stores bytes at positions and knows no queue" },
    Layer { name: "onward-embedded", on: &["onward-core", "onward-env", "onward-log"], why: ENGINE_WHY },
    Layer {
        name: "onward-keeping",
        on: &["onward-core", "onward-env", "onward-log", "onward-embedded"],
        why: "it keeps the embedded engine's folders, and no other engine's",
    },
    Layer { name: "onward-client", on: ENGINE, why: ENGINE_WHY },
    Layer {
        name: "onward-patterns",
        on: &["onward-core"],
        why: "a pattern is made of the seam's own operations, and knows no engine",
    },
    Layer { name: "onward-postgres", on: ENGINE, why: ENGINE_WHY },
    Layer { name: "onward-mysql", on: ENGINE, why: ENGINE_WHY },
    Layer { name: "onward-sqlite", on: ENGINE, why: ENGINE_WHY },
    Layer { name: "onward-redis", on: ENGINE, why: ENGINE_WHY },
    Layer { name: "onward-rabbitmq", on: ENGINE, why: ENGINE_WHY },
    Layer { name: "onward-kafka", on: ENGINE, why: ENGINE_WHY },
    Layer { name: "onward-nats", on: ENGINE, why: ENGINE_WHY },
    Layer { name: "onward-aws", on: ENGINE, why: ENGINE_WHY },
    Layer {
        name: "onward",
        on: &[
            "onward-core", "onward-env", "onward-embedded", "onward-keeping", "onward-client", "onward-patterns",
            "onward-postgres", "onward-mysql",
            "onward-sqlite", "onward-redis", "onward-rabbitmq", "onward-kafka", "onward-nats", "onward-aws",
        ],
        why: "what users import knows the engines, not the server or the command",
    },
    Layer {
        name: "onward-server",
        on: &["onward-core", "onward-env", "onward-client", "onward"],
        why: "it serves any engine and names none",
    },
    Layer {
        name: "onward-cli",
        on: &["onward-core", "onward-env", "onward-client", "onward", "onward-server", "media-pipeline"],
        why: "the command works on any engine and names none, and runs the worked example as its demo",
    },
    Layer {
        name: "onward-sim",
        on: &["onward-core", "onward-log"],
        why: "it takes the place of the real clock and disk",
    },
    Layer {
        name: "onward-conformance",
        on: &["onward-core", "onward-env", "onward-patterns"],
        why: "its library judges by the seam, and what is made of it, alone",
    },
    Layer {
        name: "onward-conformance-run",
        on: &[
            "onward-core", "onward-env", "onward-conformance", "onward-embedded", "onward-client", "onward-sim",
            "onward",
        ],
        why: "it makes the engines that the suite runs on",
    },
    Layer {
        name: "onward-bench",
        on: &["onward-core", "onward-env", "onward-log", "onward-embedded", "onward-client", "onward"],
        why: "it measures each layer by itself",
    },
    Layer { name: "xtask", on: &[], why: "the tasks must build when a crate doesn't" },
];

/// Crates in `examples/` use what users import, and nothing beneath it.
const EXAMPLES: Layer = Layer { name: "an example", on: &["onward"], why: "it shows the public API alone" };

/// The core stays free of what it is used in: no executor, no wire, no database.
const NOT_IN_CORE: &[&str] = &["tokio", "hyper", "axum", "reqwest", "sqlx", "rusqlite", "tokio-postgres"];

/// These are only for tests.
const ONLY_DEV: &[&str] = &["onward-proves"];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let own: Vec<&str> = workspace.members.iter().map(|package| package.name.as_str()).collect();
    let of = |package| findings(package, &workspace.relative(&package.manifest_path), &own);
    workspace.members.iter().flat_map(of).collect()
}

fn findings(package: &Package, manifest: &str, own: &[&str]) -> Vec<Finding> {
    let example = manifest.starts_with("examples/").then_some(&EXAMPLES);
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == package.name).or(example) else {
        let what = format!("{} stands in no layer", package.name);
        return vec![Finding::new(manifest, 1, what, "add it to the table in xtask/src/tidy/layers.rs")];
    };
    let wrong = |dependency: &&Dependency| is_wrong(layer, dependency, own);
    let found = package.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"));
    found.filter(wrong).map(|dependency| finding(package, layer, dependency, manifest)).collect()
}

fn is_wrong(layer: &Layer, dependency: &Dependency, own: &[&str]) -> bool {
    let name = dependency.name.as_str();
    let above = own.contains(&name) && !layer.on.contains(&name);
    above || ONLY_DEV.contains(&name) || (layer.name == "onward-core" && NOT_IN_CORE.contains(&name))
}

fn finding(package: &Package, layer: &Layer, dependency: &Dependency, manifest: &str) -> Finding {
    let what = format!("{} is built on {}: {}", package.name, dependency.name, layer.why);
    let mend = match ONLY_DEV.contains(&dependency.name.as_str()) {
        true => "move it to [dev-dependencies]".to_owned(),
        false => format!("{} may be built on: {}", layer.name, layer.on.join(", ")),
    };
    Finding::new(manifest, 1, what, mend)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, manifest: &str, dependencies: &[(&str, Option<&str>)]) -> usize {
        let dependencies =
            dependencies.iter().map(|(name, kind)| serde_json::json!({ "name": name, "kind": kind }));
        let package = serde_json::json!({
            "id": name, "name": name, "version": "0", "license": null, "manifest_path": manifest,
            "targets": [], "dependencies": dependencies.collect::<Vec<_>>(),
        });
        let own = ["onward", "onward-core", "onward-env", "onward-log", "onward-embedded", "onward-proves"];
        findings(&serde_json::from_value(package).unwrap(), manifest, &own).len()
    }

    #[test]
    fn an_arrow_that_points_up_is_found_and_one_that_points_down_is_not() {
        assert_eq!(found("onward-log", "a", &[("onward-embedded", None)]), 1);
        assert_eq!(found("onward-log", "a", &[("onward-env", None)]), 1);
        assert_eq!(found("onward-embedded", "a", &[("onward-log", None), ("serde", None)]), 0);
    }

    #[test]
    fn tests_may_use_what_the_crate_may_not() {
        assert_eq!(found("onward-log", "a", &[("onward-env", Some("dev"))]), 0);
        assert_eq!(found("onward-log", "a", &[("onward-proves", None)]), 1);
        assert_eq!(found("onward-log", "a", &[("onward-proves", Some("dev"))]), 0);
    }

    #[test]
    fn the_core_takes_no_executor() {
        assert_eq!(found("onward-core", "a", &[("tokio", None)]), 1);
        assert_eq!(found("onward-env", "a", &[("tokio", None)]), 0);
    }

    #[test]
    fn an_example_is_built_on_the_public_api_alone_and_an_unknown_crate_is_found() {
        assert_eq!(found("media", "examples/media/Cargo.toml", &[("onward", None)]), 0);
        assert_eq!(found("media", "examples/media/Cargo.toml", &[("onward-core", None)]), 1);
        assert_eq!(found("onward-new", "crates/onward-new/Cargo.toml", &[]), 1);
    }
}
