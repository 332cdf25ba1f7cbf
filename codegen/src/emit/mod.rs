//! Emits the generated files, one module per file. They hold only data: enums, static arrays,
//! perfect-hash maps. The per-SM backends are an askama template.

pub mod choices;
pub mod elf;
pub mod encoding;
pub mod helpers;
pub mod images;
pub mod latency;
pub mod legal;
pub mod legality;
pub mod lowering;
pub mod memory;
pub mod operands;
pub mod ori;
pub mod passes;
pub mod phases;
pub mod ptx;
pub mod regclass;
pub mod registers;
mod shared;
pub mod targets;
pub mod throughput;
pub mod tuning;

use crate::model::Model;
use proc_macro2::{Delimiter, Literal, Spacing, TokenStream, TokenTree};
use quote::{format_ident, quote};

/// Every generated file: name and text.
pub fn all(model: &Model) -> Vec<(String, String)> {
    vec![
        ("targets.rs".into(), pretty(targets::emit(model))),
        ("elf.rs".into(), pretty(elf::emit(model))),
        ("ori.rs".into(), pretty(ori::emit(model))),
        ("operands.rs".into(), pretty(operands::emit(model))),
        ("legal.rs".into(), pretty(legal::emit(model))),
        ("lowering.rs".into(), pretty(lowering::emit(model))),
        ("legality.rs".into(), pretty(legality::emit(model))),
        ("choices.rs".into(), pretty(choices::emit(model))),
        ("images.rs".into(), pretty(images::emit(model))),
        ("phases.rs".into(), pretty(phases::emit(model))),
        ("passes.rs".into(), pretty(passes::emit(model))),
        ("dispatch.rs".into(), pretty(passes::dispatch(model))),
        ("tuning.rs".into(), pretty(tuning::emit(model))),
        ("registers.rs".into(), pretty(registers::emit(model))),
        ("regclass.rs".into(), pretty(regclass::emit(model))),
        ("ptx.rs".into(), pretty(ptx::emit(model))),
        ("memory.rs".into(), pretty(memory::emit(model))),
        ("latency.rs".into(), pretty(latency::emit(model))),
        ("throughput.rs".into(), pretty(throughput::emit(model))),
        ("helpers.rs".into(), helpers::emit(model)),
        ("encoding.rs".into(), encoding::emit(model)),
        ("backends.rs".into(), targets::backends(model)),
    ]
}

/// Characters from which on a text is laid out by rows alone.
const LONG: usize = 100_000;

/// Formats generated tokens readably. In a long text a row of a table has a line: to parse and lay
/// out all its tokens took a third of the generator's time.
fn pretty(tokens: TokenStream) -> String {
    let text = tokens.to_string();
    if text.len() > LONG {
        return by_rows(tokens);
    }
    match syn::parse2(tokens) {
        Ok(file) => prettyplease::unparse(&file),
        // Tokens that do not parse are a bug of the emitter; the Rust compiler reports where.
        Err(_) => text,
    }
}

/// The same tokens with a line for each item, and for each element of its lists.
fn by_rows(tokens: TokenStream) -> String {
    let mut text = String::new();
    for tree in tokens {
        let ends = match &tree {
            TokenTree::Punct(punct) => punct.as_char() == ';',
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            _ => false,
        };
        match &tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                text.push('[');
                elements(group.stream(), &mut text);
                text.push(']');
            }
            TokenTree::Punct(punct) if punct.spacing() == Spacing::Joint => {
                text.push(punct.as_char());
                continue;
            }
            tree => text.push_str(&tree.to_string()),
        }
        text.push(if ends { '\n' } else { ' ' });
    }
    text
}

/// The elements of a list, one on each line.
fn elements(list: TokenStream, text: &mut String) {
    let mut element = Vec::new();
    for tree in list {
        let ends = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == ',');
        element.push(tree);
        if ends {
            text.push('\n');
            text.push_str(&TokenStream::from_iter(element.drain(..)).to_string());
        }
    }
    text.push_str(&TokenStream::from_iter(element).to_string());
}

/// Bytes as one literal, which the compiler reads faster than a list of numbers.
fn bytes(bytes: &[u8]) -> Literal {
    Literal::byte_string(bytes)
}

/// `snake_case` or `kebab` to `CamelCase`.
pub fn camel(name: &str) -> String {
    name.split(['_', '.', '-', ' '])
        .map(|word| {
            let mut chars = word.chars();
            chars.next().map_or(String::new(), |c| c.to_ascii_uppercase().to_string() + chars.as_str())
        })
        .collect()
}

/// A text as the identifier of a constant: upper case, other characters replaced by `_`, and `_`
/// before a leading digit.
pub fn constant(text: &str) -> String {
    let body: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    match body.as_str() {
        "_" => "NONE".into(),
        _ if body.starts_with(|c: char| c.is_ascii_digit()) => format!("_{body}"),
        _ => body,
    }
}

/// A fieldless enum with its list `ALL` and a `name` function; variants are given as (identifier,
/// text).
pub fn plain_enum(name: &str, doc: &str, variants: &[(String, String)]) -> TokenStream {
    let ident = format_ident!("{name}");
    let variant: Vec<_> = variants.iter().map(|v| format_ident!("{}", v.0)).collect();
    let text = variants.iter().map(|v| &v.1);
    let count = variants.len();
    quote! {
        #[doc = #doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum #ident { #(#variant),* }
        impl #ident {
            /// All values in table order.
            pub const ALL: [#ident; #count] = [#(#ident::#variant),*];
            /// The name in the tables.
            pub fn name(self) -> &'static str {
                const NAMES: [&str; #count] = [#(#text),*];
                NAMES[self as usize]
            }
        }
    }
}

/// A perfect-hash map from text to an expression.
pub fn phf_map(name: &str, doc: &str, value_type: TokenStream, entries: &[(String, String)]) -> TokenStream {
    let mut map = phf_codegen::Map::new();
    for (key, value) in entries {
        map.entry(key.as_str(), value.as_str());
    }
    let map: TokenStream = map.build().to_string().parse().unwrap_or_default();
    let ident = format_ident!("{name}");
    quote! {
        #[doc = #doc]
        pub static #ident: ::phf::Map<&'static str, #value_type> = #map;
    }
}
