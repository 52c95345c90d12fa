//! The smallest pieces of the binary form: numbers, texts, options, lists. Every length is checked before it is used.

use std::sync::Arc;
use std::time::Duration;

/// What was wrong with bytes that were to be read; who reads them adds where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

pub(crate) type Decoded<T> = Result<T, Malformed>;

/// A value with a binary form. What `put` writes, `get` reads.
pub(crate) trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn get(input: &mut Input<'_>) -> Decoded<Self>;
}

/// Bytes being read from the front.
#[derive(Debug, Clone)]
pub(crate) struct Input<'a> {
    rest: &'a [u8],
    whole: usize,
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, whole: bytes.len() }
    }

    /// How many bytes were read so far.
    pub(crate) fn at(&self) -> usize {
        self.whole - self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte, which stays.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Decoded<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(bytes).ok_or(Malformed("it ends too early"))?;
        self.rest = rest;
        Ok(head)
    }

    pub(crate) fn byte(&mut self) -> Decoded<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| Malformed("it ends too early"))
    }

    /// A number of 1 to 10 bytes, 7 bits each, lowest first.
    pub(crate) fn number(&mut self) -> Decoded<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed("a number is out of range"))
    }

    pub(crate) fn bytes(&mut self) -> Decoded<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).map_err(|_| Malformed("a length is out of range"))?)
    }

    pub(crate) fn text(&mut self) -> Decoded<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    /// How many items follow; each has at least one byte, so a count beyond what is left is refused before allocation.
    pub(crate) fn count(&mut self) -> Decoded<usize> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(Malformed("a count is larger than what follows")),
        }
    }

    /// Refuses bytes behind the end of what was read.
    pub(crate) fn end(&self) -> Decoded<()> {
        if self.is_empty() { Ok(()) } else { Err(Malformed("bytes follow the end")) }
    }
}

pub(crate) fn put_number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

impl Wire for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        input.byte()
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        match input.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a yes or no is neither")),
        }
    }
}

impl Wire for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(u64::from(*self), out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        u32::try_from(input.number()?).map_err(|_| Malformed("a number is out of range"))
    }
}

impl Wire for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(*self, out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        input.number()
    }
}

impl Wire for i64 {
    /// Small values of either sign are short.
    fn put(&self, out: &mut Vec<u8>) {
        put_number(((self << 1) ^ (self >> 63)) as u64, out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        let bits = input.number()?;
        Ok((bits >> 1) as i64 ^ -((bits & 1) as i64))
    }
}

impl Wire for u128 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        Ok(u128::from_le_bytes(input.array()?))
    }
}

impl Wire for Arc<str> {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        input.text().map(Arc::from)
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        input.text().map(str::to_owned)
    }
}

impl Wire for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.as_secs(), out);
        put_number(u64::from(self.subsec_nanos()), out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        let (seconds, nanos) = (input.number()?, u32::get(input)?);
        if nanos >= 1_000_000_000 {
            return Err(Malformed("a span is out of range"));
        }
        Ok(Self::new(seconds, nanos))
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        if bool::get(input)? { T::get(input).map(Some) } else { Ok(None) }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_number(self.len() as u64, out);
        self.iter().for_each(|item| item.put(out));
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        let count = input.count()?;
        let mut items = Self::with_capacity(count.min(ITEMS_AHEAD));
        for _ in 0..count {
            items.push(T::get(input)?);
        }
        Ok(items)
    }
}

/// Most items of a list for which room is made before they are read: an item in memory is larger than its bytes.
const ITEMS_AHEAD: usize = 1024;

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        Ok((A::get(input)?, B::get(input)?))
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_ref().put(out);
    }

    fn get(input: &mut Input<'_>) -> Decoded<Self> {
        T::get(input).map(Box::new)
    }
}

/// The binary form of a struct is that of its fields, in this order.
macro_rules! wire_struct {
    ($type:ty { $($field:ident),* $(,)? }) => {
        impl $crate::codec::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                $( self.$field.put(out); )*
            }

            fn get(input: &mut $crate::codec::wire::Input<'_>) -> $crate::codec::wire::Decoded<Self> {
                Ok(Self { $( $field: $crate::codec::wire::Wire::get(input)?, )* })
            }
        }
    };
}

/// The binary form of an enum without content is a number that never changes its meaning.
macro_rules! wire_enum {
    ($type:ty { $($variant:ident = $number:literal),* $(,)? }) => {
        impl $crate::codec::wire::Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(match self { $( Self::$variant => $number, )* });
            }

            fn get(input: &mut $crate::codec::wire::Input<'_>) -> $crate::codec::wire::Decoded<Self> {
                match input.byte()? {
                    $( $number => Ok(Self::$variant), )*
                    _ => Err($crate::codec::wire::Malformed(concat!("an unknown ", stringify!($type)))),
                }
            }
        }
    };
}

pub(crate) use {wire_enum, wire_struct};
