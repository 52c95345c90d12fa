//! Texts of which there is one in every message: short ones kept in place, common ones kept once.

use std::cell::RefCell;
use std::sync::Arc;
use std::{cmp, fmt, hash};

/// Bytes that are kept in place: a UUID in its usual form fits.
const HERE_BYTES_MAX: usize = 38;

/// A text that never changes: a short one needs no memory of its own, and copying it touches no shared count.
#[derive(Clone)]
pub(crate) struct Text(Kept);

#[derive(Clone)]
enum Kept {
    Here { len: u8, bytes: [u8; HERE_BYTES_MAX] },
    Shared(Arc<str>),
}

impl Text {
    pub(crate) fn as_str(&self) -> &str {
        match &self.0 {
            Kept::Here { len, bytes } => {
                str::from_utf8(&bytes[..usize::from(*len)]).expect("a whole text was put there")
            }
            Kept::Shared(text) => text,
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Kept::Here { len, bytes } => &bytes[..usize::from(*len)],
            Kept::Shared(text) => text.as_bytes(),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        if text.len() > HERE_BYTES_MAX {
            return Self(Kept::Shared(text.into()));
        }
        let mut bytes = [0; HERE_BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self(Kept::Here { len: text.len() as u8, bytes })
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl hash::Hash for Text {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Texts of one thread that are kept for the next message, and the longest of them, in bytes.
const COMMON_MAX: usize = 64;
const COMMON_BYTES_MAX: usize = 64;

thread_local! {
    static COMMON: RefCell<[Option<Arc<str>>; COMMON_MAX]> = const { RefCell::new([const { None }; COMMON_MAX]) };
}

/// The text as one that this thread shares with the messages it made lately: types and sources are few.
pub(crate) fn common(text: &str) -> Arc<str> {
    if text.len() > COMMON_BYTES_MAX {
        return text.into();
    }
    let place = text.bytes().fold(text.len(), |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    COMMON.with_borrow_mut(|all| {
        let kept = &mut all[place % COMMON_MAX];
        match kept {
            Some(found) if **found == *text => found.clone(),
            _ => kept.insert(text.into()).clone(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_same_wherever_it_is_kept() {
        for length in [0, 1, 36, HERE_BYTES_MAX, HERE_BYTES_MAX + 1, 200] {
            let plain = "é".repeat(length / 2) + if length % 2 == 1 { "x" } else { "" };
            let text = Text::from(plain.as_str());
            assert_eq!(text.as_str(), plain);
            assert_eq!(text, text.clone());
            assert_ne!(text, Text::from(format!("{plain}!").as_str()));
        }
    }

    #[test]
    fn texts_are_ordered_as_their_characters_are() {
        let mut texts: Vec<String> = ["b", "a", "", "ab"].map(str::to_owned).into();
        texts.extend(["a".repeat(HERE_BYTES_MAX), "a".repeat(HERE_BYTES_MAX + 1)]);
        let mut kept: Vec<Text> = texts.iter().map(|text| text.as_str().into()).collect();
        texts.sort();
        kept.sort();
        assert_eq!(kept.iter().map(Text::as_str).collect::<Vec<_>>(), texts);
    }

    #[test]
    fn a_common_text_is_kept_once_and_another_in_its_place_is_not_taken_for_it() {
        assert!(Arc::ptr_eq(&common("order.placed"), &common("order.placed")));
        for number in 0..10 * COMMON_MAX {
            let text = format!("type-{number}");
            assert_eq!(&*common(&text), text);
        }
        assert_eq!(&*common(&"x".repeat(1000)), "x".repeat(1000));
    }
}
