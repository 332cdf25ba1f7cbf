//! Arrays of a few elements, mapped without the standard library's loop over arrays of any length.
//!
//! `map` of an array costs the build some 400 lines of code that the optimizer has to take away
//! again; there were hundreds of such calls.

/// What maps the elements of an array.
pub(crate) trait Each<T, const N: usize>: Sized {
    /// The results of `of` for the elements, in order.
    fn each<U>(self, of: impl FnMut(T) -> U) -> [U; N];
}

macro_rules! each {
    ($($count:literal: $($element:ident)+;)+) => {$(
        impl<T> Each<T, $count> for [T; $count] {
            #[inline]
            fn each<U>(self, mut of: impl FnMut(T) -> U) -> [U; $count] {
                let [$($element),+] = self;
                [$(of($element)),+]
            }
        }
    )+};
}

each! {
    1: a;
    2: a b;
    3: a b c;
    4: a b c d;
    5: a b c d e;
    6: a b c d e f;
    8: a b c d e f g h;
}
