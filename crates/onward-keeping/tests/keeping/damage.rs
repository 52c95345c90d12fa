//! Damaged and missing objects are told by name, and nothing is made of them.

use crate::support::{Place, enqueue, open};
use onward_core::ErrorKind;
use onward_env::SystemEnv;
use onward_keeping::{Target, check, restore};
use onward_proves::proves;
use std::path::{Path, PathBuf};

fn objects(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(objects(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[tokio::test]
#[proves("LOG23")]
async fn every_flipped_bit_and_every_missing_object_of_a_backup_is_told_by_its_name() {
    let place = Place::new();
    let engine = open(&place.data());
    for number in 0..300 {
        enqueue(&engine, &format!("m{number}")).await;
    }
    engine.snapshot().unwrap();
    enqueue(&engine, "behind").await;
    place.back_up().await;
    let all: Vec<PathBuf> = objects(&place.path("copies"))
        .into_iter()
        .filter(|path| !path.to_string_lossy().contains("claims"))
        .collect();
    assert!(all.len() >= 3, "{all:?}");
    for (number, object) in all.iter().enumerate() {
        let (good, name) = (std::fs::read(object).unwrap(), object.file_name().unwrap().to_str().unwrap());
        let mut bad = good.clone();
        let at = (number * 7919) % bad.len();
        bad[at] ^= 1 << (number % 8);
        std::fs::write(object, &bad).unwrap();
        let error = check(&place.to()).await.expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(name), "{name}: {error}");
        std::fs::remove_file(object).unwrap();
        check(&place.to()).await.expect_err(name);
        restore(&place.to(), &place.path(&format!("r{number}")), Target::End, SystemEnv::shared())
            .await
            .expect_err(name);
        std::fs::write(object, &good).unwrap();
        check(&place.to()).await.unwrap();
    }
}
