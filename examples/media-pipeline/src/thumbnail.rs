//! Making a thumbnail: pure, from bytes to bytes.

use image::{DynamicImage, ImageError, ImageFormat, ImageReader, Limits};
use std::io::Cursor;

/// Longest side of a thumbnail, in pixels.
pub const SIDE_MAX: u32 = 160;
/// Largest picture that is taken, in pixels of one side.
pub const PICTURE_SIDE_MAX: u32 = 20_000;
/// Most memory that decoding one picture may take, in bytes.
pub const DECODE_BYTES_MAX: u64 = 512 << 20;
/// The formats that are taken, for people.
pub const FORMATS: &str = "PNG, JPEG, GIF, WebP, BMP";

/// What was made of a picture.
#[derive(Debug)]
pub struct Made {
    /// The thumbnail as PNG.
    pub png: Vec<u8>,
    /// The picture's format.
    pub format: String,
    /// The picture's width in pixels.
    pub width: u32,
    /// The picture's height in pixels.
    pub height: u32,
}

/// Makes the thumbnail of a picture.
///
/// # Errors
/// A sentence that the app can be shown: what is wrong with the picture. It is wrong for good: trying again never helps.
pub fn make(bytes: &[u8]) -> Result<Made, String> {
    let (picture, format) = decode(bytes)?;
    let small = picture.thumbnail(SIDE_MAX, SIDE_MAX).to_rgba8();
    let mut png = Cursor::new(Vec::new());
    small.write_to(&mut png, ImageFormat::Png).map_err(|e| format!("the thumbnail can't be written: {e}"))?;
    Ok(Made { png: png.into_inner(), format, width: picture.width(), height: picture.height() })
}

fn decode(bytes: &[u8]) -> Result<(DynamicImage, String), String> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| e.to_string())?;
    let format = reader.format().ok_or_else(|| format!("it is not a picture that is taken ({FORMATS})"))?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(PICTURE_SIDE_MAX);
    limits.max_image_height = Some(PICTURE_SIDE_MAX);
    limits.max_alloc = Some(DECODE_BYTES_MAX);
    reader.limits(limits);
    let name = format!("{format:?}").to_lowercase();
    let picture = reader.decode().map_err(|e| match e {
        ImageError::Unsupported(_) => format!("{name} is not taken ({FORMATS})"),
        e => format!("the {name} picture is damaged: {}", e.to_string().trim_end()),
    })?;
    Ok((picture, name))
}

#[cfg(test)]
mod tests {
    use super::{SIDE_MAX, make};
    use crate::pictures;
    use onward_proves::proves;

    #[test]
    fn a_picture_becomes_a_small_one_with_the_same_shape() {
        let drawn = pictures::draw(3);
        let made = make(&drawn.bytes).expect("a drawn picture is whole");
        let small = image::load_from_memory(&made.png).expect("a thumbnail is a picture");
        assert_eq!(small.width().max(small.height()), SIDE_MAX);
        let (long, short) = (made.width.max(made.height), made.width.min(made.height));
        let expected = SIDE_MAX * short / long;
        assert!(small.width().min(small.height()).abs_diff(expected) <= 1);
    }

    #[test]
    #[proves("O6")]
    fn a_damaged_picture_is_refused_with_a_reason_at_whatever_byte_it_ends() {
        let whole = pictures::draw(0).bytes;
        for end in (0..whole.len() - 12).step_by(97) {
            let reason = make(&whole[..end]).expect_err("it is cut");
            assert!(reason.contains("damaged") || reason.contains("not a picture"), "cut at {end}: {reason}");
        }
        let reason = make(b"this is a letter, not a picture").expect_err("text");
        assert!(reason.contains("PNG"), "{reason}");
    }
}
