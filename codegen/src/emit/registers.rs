//! Emits `registers.rs`: the callee-saved registers.

use crate::model::Model;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let rows = model.registers.iter().map(|r| {
        let (file, first, last) = (&r.file, r.first, r.last);
        let by = format_ident!("{}", format!("{:?}", r.by));
        quote!(Kept { by: KeptBy::#by, file: #file, first: #first, last: #last })
    });
    let count = model.registers.len();
    quote! {
        /// Runs of callee-saved registers.
        pub static KEPT: [Kept; #count] = [#(#rows),*];
    }
}
