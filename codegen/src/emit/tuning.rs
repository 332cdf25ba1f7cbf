//! Emits `tuning.rs`: the tunables and their facts.

use super::{camel, plain_enum};
use crate::model::Model;
use proc_macro2::{Literal, TokenStream};
use quote::quote;

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let names: Vec<_> = model.tunables.iter().map(|row| (camel(&row.name), row.name.clone())).collect();
    let tunable = plain_enum("Tunable", "A number in a pass that a search may change.", &names);
    let infos = model.tunables.iter().map(|row| {
        let (pass, what) = (&row.pass, &row.what);
        let tried = row.tried.iter().map(|n| Literal::u32_unsuffixed(*n));
        let default = Literal::u32_unsuffixed(row.default);
        quote! { TunableInfo { pass: #pass, default: #default, tried: &[#(#tried),*], what: #what } }
    });
    let count = names.len();
    quote! {
        #tunable
        /// Facts of each tunable, by [`Tunable`].
        pub static TUNABLES: [TunableInfo; #count] = [#(#infos),*];
    }
}
