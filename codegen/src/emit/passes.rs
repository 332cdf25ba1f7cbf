//! Emits `passes.rs`, the passes in the order in which they run, and `dispatch.rs`, which calls the
//! function of each.

use super::{camel, plain_enum};
use crate::check::passes::{ANALYSES, WHEN};
use crate::model::Model;
use crate::rows::passes::PassRow;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// Facts of each pass, and the enums they use.
pub fn emit(model: &Model) -> TokenStream {
    let name = |row: &PassRow| (camel(&row.name), row.name.clone());
    let variants: Vec<_> = model.passes.iter().map(|row| name(row)).collect();
    let pass = plain_enum("Pass", "A pass, known by its name; the number is its place in the order.", &variants);
    let words = |list: &[&str]| list.iter().map(|word| (camel(word), word.to_string())).collect::<Vec<_>>();
    let analysis = plain_enum("Analysis", "An analysis that is cached between passes.", &words(&ANALYSES));
    let when = plain_enum("When", "When a pass runs.", &words(&WHEN));
    let count = model.passes.len();
    let infos = model.passes.iter().map(|row| {
        let (phase, when) = (format_ident!("{}", row.phase), format_ident!("{}", camel(&row.when)));
        let (optional, preserves) = (row.optional, preserved(&row.preserves));
        let words = |s: &str| s.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        let (requires, makes, destroys) = (words(&row.requires), words(&row.makes), words(&row.destroys));
        let after = row.after.iter().map(|(name, reason)| {
            let earlier = format_ident!("{}", camel(name));
            quote! { (Pass::#earlier, #reason) }
        });
        quote! { PassInfo {
            phase: super::phases::Phase::#phase, when: When::#when, optional: #optional, preserves: &[#(#preserves),*],
            requires: &[#(#requires),*], makes: &[#(#makes),*], destroys: &[#(#destroys),*], after: &[#(#after),*],
        } }
    });
    quote! {
        #pass
        #analysis
        #when
        /// Facts of each pass, by [`Pass`].
        pub static PASSES: [PassInfo; #count] = [#(#infos),*];
    }
}

fn preserved(words: &str) -> Vec<TokenStream> {
    let all = words.split_whitespace().any(|word| word == "all");
    let kept = ANALYSES.iter().filter(|name| all || words.split_whitespace().any(|word| word == **name));
    kept.map(|name| format_ident!("{}", camel(name))).map(|ident| quote! { Analysis::#ident }).collect()
}

/// One `match` that calls the function of each pass.
pub fn dispatch(model: &Model) -> TokenStream {
    let arms = model.passes.iter().map(|row| {
        let pass = format_ident!("{}", camel(&row.name));
        let call: TokenStream = format!("crate::{}", row.run).parse().unwrap_or_default();
        quote! { Pass::#pass => #call.outcome() }
    });
    quote! {
        /// Runs a pass. Most passes return nothing, which counts as success.
        #[allow(clippy::unit_arg)]
        fn call(pass: Pass, cx: &mut PassCx, options: &Legalization) -> Result<(), String> {
            match pass { #(#arms),* }
        }
    }
}
