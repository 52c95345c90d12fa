//! The pictures to upload: a folder's, or a few that are drawn here.

use anyhow::{Context, Result};
use image::{ImageFormat, Rgb, RgbImage};
use std::{io::Cursor, path::Path};

/// Most pictures that one run of the demo takes.
pub const PICTURES_MAX: usize = 10_000;
const DRAWN: u32 = 10;

/// A file that an app wants to upload.
#[derive(Debug, Clone)]
pub struct Picture {
    /// Its name.
    pub name: String,
    /// Its bytes; it may be damaged.
    pub bytes: Vec<u8>,
}

/// The files of a folder, by name. Everything in it is uploaded: what is not a picture fails visibly.
///
/// # Errors
/// When the folder can't be read or is empty; each says which and what to do.
pub fn from_folder(dir: &Path) -> Result<Vec<Picture>> {
    let listing =
        std::fs::read_dir(dir).with_context(|| format!("the folder {} can't be read", dir.display()))?;
    let mut paths: Vec<_> =
        listing.filter_map(|e| Some(e.ok()?.path())).filter(|path| path.is_file()).collect();
    paths.sort();
    anyhow::ensure!(!paths.is_empty(), "the folder {} has no files: give one with pictures", dir.display());
    anyhow::ensure!(
        paths.len() <= PICTURES_MAX,
        "{} files, more than {PICTURES_MAX}: give a smaller folder",
        paths.len()
    );
    let read = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).with_context(|| format!("{} can't be read", path.display()))?;
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(Picture { name, bytes })
    };
    paths.iter().map(read).collect()
}

/// Ten pictures, and two that are damaged: one cut short, and a letter that calls itself a picture.
pub fn drawn() -> Vec<Picture> {
    let mut pictures: Vec<Picture> = (0..DRAWN).map(draw).collect();
    let mut cut = draw(2);
    cut.bytes.truncate(cut.bytes.len() / 2);
    cut.name = "cut-short.png".into();
    pictures.insert(4, cut);
    pictures.insert(
        7,
        Picture { name: "letter.jpg".into(), bytes: b"Dear Ada, this is not a picture.".to_vec() },
    );
    pictures
}

/// One drawn picture: rings around a point, in colours of their own.
pub fn draw(number: u32) -> Picture {
    let (width, height) = (480 + 40 * (number % 4), 320 + 60 * (number % 3));
    let (x0, y0) = (width as f32 * (0.3 + 0.05 * number as f32), height as f32 * 0.5);
    let canvas = RgbImage::from_fn(width, height, |x, y| {
        let (dx, dy) = (x as f32 - x0, y as f32 - y0);
        let ring = ((dx * dx + dy * dy).sqrt() / (9.0 + number as f32)).sin() * 0.5 + 0.5;
        let sky = y as f32 / height as f32;
        let channel = |phase: f32| (255.0 * (0.6 * ring + 0.4 * (sky + phase).fract())) as u8;
        Rgb([channel(0.1 * number as f32), channel(0.33), channel(0.07 * number as f32 + 0.5)])
    });
    let format = if number.is_multiple_of(2) { ImageFormat::Png } else { ImageFormat::Bmp };
    let mut bytes = Cursor::new(Vec::new());
    canvas.write_to(&mut bytes, format).expect("writing into memory does not fail");
    let extension = format.extensions_str()[0];
    Picture { name: format!("rings-{number:02}.{extension}"), bytes: bytes.into_inner() }
}
