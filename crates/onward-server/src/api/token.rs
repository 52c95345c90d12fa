//! Lease tokens as text: opaque to everybody but the engine that gave them.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use onward_core::{Error, LeaseToken, Result};

/// Longest token text taken, in characters.
const TEXT_MAX: usize = 4096;

pub(super) fn to_text(token: &LeaseToken) -> Result<String> {
    let bytes =
        rmp_serde::to_vec(token).map_err(|e| Error::internal(format!("a token can't be written: {e}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

pub(super) fn from_text(text: &str) -> Result<LeaseToken> {
    let wrong =
        || Error::invalid("is not a token of a lease").at("`token`").mend("send it as `/v1/lease` gave it");
    if text.len() > TEXT_MAX {
        return Err(wrong());
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
    rmp_serde::from_slice(&bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_core::Inlet;

    #[test]
    fn a_token_goes_out_and_comes_back_the_same_and_anything_else_is_refused() {
        let token = LeaseToken {
            inlet: Inlet::queue("shop/emails").unwrap(),
            id: "a b/ü".try_into().unwrap(),
            handle: vec![0, 255, 7].into(),
        };
        let text = to_text(&token).unwrap();
        assert_eq!(from_text(&text).unwrap(), token);
        for wrong in ["", "!", "AAAA", &text[1..], &"A".repeat(5000)] {
            assert!(from_text(wrong).is_err(), "{wrong}");
        }
    }
}
