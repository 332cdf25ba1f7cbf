//! SASS instructions: encode, decode, text in and out.
