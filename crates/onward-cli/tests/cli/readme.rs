//! The README's shell lines, run by a shell as they stand.

use onward_proves::proves;
use std::{path::Path, process::Command};

const README: &str = include_str!("../../../../README.md");

#[test]
#[proves("T58")]
fn the_readmes_shell_lines_run_as_they_stand_twice() {
    let lines = README.split("## From a shell").nth(1).unwrap().split("```sh\n").nth(1).unwrap();
    let lines = lines.split("```").next().unwrap();
    assert_eq!(lines.lines().count(), 5);
    let dir = tempfile::tempdir().unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_onward")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for run in 1..=2 {
        let output = Command::new("sh")
            .args(["-euc", lines])
            .current_dir(dir.path())
            .env("PATH", &path)
            .env_remove("ONWARD_DATA_DIR")
            .output()
            .unwrap();
        let (text, errors) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr).into_owned());
        assert!(output.status.success(), "run {run}: {text}{errors}");
        assert!(text.contains("balance"), "{text}");
    }
}
