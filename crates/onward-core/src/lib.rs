//! Messages, names, settlement, errors, capabilities and the engine seam: what every other crate speaks.
