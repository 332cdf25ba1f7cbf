//! Emits `elf.rs`: layouts, ELF facts of SM numbers, sections, attributes.

use super::{camel, plain_enum};
use crate::model::Model;
use crate::model::elf::{Elf, LAYOUTS, RELOCATION_ROLES, bit_ranges, constants, hex};
use crate::rows::elf::{AttributeRow, ElfTargetRow, SectionRow};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let elf = &model.elf;
    let layouts: Vec<_> = LAYOUTS.iter().map(|n| (camel(n), n.to_string())).collect();
    let layout = plain_enum("Layout", "One of the ways in which a cubin is laid out.", &layouts);
    let content = words("Content", "What the writer puts into a section.", elf.sections.iter().map(|r| &r.content));
    let value = words("AttributeValue", "Where a figure comes from.", elf.attributes.iter().map(|r| &r.value));
    let infos = LAYOUTS.iter().filter_map(|name| elf.layouts.iter().find(|l| l.name == *name)).map(|l| {
        let (split, readonly) = (l.relocs == "split", l.readonly);
        let (first, registers) = (l.headers == "first", l.text_info == "symbol+registers");
        let small = l.small_params;
        let large = match l.large_base {
            None => quote!(None),
            Some(base) => quote!(Some(#base)),
        };
        let pointers = l.pointers.iter().map(|(space, number)| quote!((#space, #number)));
        quote! { LayoutInfo {
            split_relocs: #split, readonly_flags: #readonly, headers_first: #first, text_info_registers: #registers,
            small_params: #small, large_param_base: #large, pointers: &[#(#pointers),*],
        } }
    });
    let targets = elf.targets.iter().map(|row| target(elf, row));
    let sections = elf.sections.iter().map(|row| section(row));
    let attributes = elf.attributes.iter().map(|row| attribute(row));
    let (compat, reserved, relocations) = (compat(elf), reserved(elf), relocations(elf));
    let (nl, nt, ns, na) = (LAYOUTS.len(), elf.targets.len(), elf.sections.len(), elf.attributes.len());
    quote! {
        #layout #content #value
        /// Number of layouts.
        pub const LAYOUT_COUNT: usize = #nl;
        /// Facts of each layout, by [`Layout`].
        pub static LAYOUTS: [LayoutInfo; LAYOUT_COUNT] = [#(#infos),*];
        /// ELF facts of each SM number.
        pub static ELF_TARGETS: [ElfTarget; #nt] = [#(#targets),*];
        /// All kinds of section.
        pub static SECTIONS: [SectionRow; #ns] = [#(#sections),*];
        /// All attributes.
        pub static ATTRIBUTES: [AttributeRow; #na] = [#(#attributes),*];
        #compat #reserved #relocations
    }
}

/// A fieldless enum of the distinct words of a column, in order of first mention.
fn words<'a>(name: &str, doc: &str, column: impl Iterator<Item = &'a String>) -> TokenStream {
    let mut variants: Vec<(String, String)> = Vec::new();
    for word in column {
        if !variants.iter().any(|v| &v.1 == word) {
            variants.push((camel(word), word.clone()));
        }
    }
    plain_enum(name, doc, &variants)
}

fn target(elf: &Elf, row: &ElfTargetRow) -> TokenStream {
    let (sm, low, blocks, layout) = (row.sm, row.flags_low, row.text_blocks, format_ident!("{}", camel(&row.layout)));
    let reserved = match row.reserved {
        None => quote!(None),
        Some((size, align)) => quote!(Some((#size, #align))),
    };
    let toolkit = row.toolkit;
    let constants = constants(&row.constants).into_iter().flatten().map(|(name, value)| {
        let id = elf.attributes.iter().find(|a| a.name == name).map_or(0, |a| a.id);
        match value {
            None => quote!((#id, None)),
            Some(value) => quote!((#id, Some(#value))),
        }
    });
    quote! { ElfTarget {
        sm: #sm, layout: Layout::#layout, flags_low: #low, text_blocks: #blocks, reserved_shared: #reserved, toolkit: #toolkit,
        constants: &[#(#constants),*],
    } }
}

fn section(row: &SectionRow) -> TokenStream {
    let (name, kind, object_kind, flags) = (&row.name, row.kind, row.object_kind, row.flags);
    let (align, entry, link, symbol) = (row.align, row.entry, &row.link, row.symbol == "yes");
    let (scope, content) = (format_ident!("{}", camel(&row.scope)), format_ident!("{}", camel(&row.content)));
    let bytes = hex(&row.bytes).unwrap_or_default();
    let info = match row.info.as_str() {
        "" => quote!(InfoRule::Zero),
        "text" => quote!(InfoRule::Text),
        "function" => quote!(InfoRule::Function),
        "symbols" => quote!(InfoRule::Symbols),
        other => quote!(InfoRule::Section(#other)),
    };
    let order = [row.rel, row.rela].map(|order| match order {
        None => quote!(None),
        Some(place) => quote!(Some(#place)),
    });
    quote! { SectionRow {
        name: #name, scope: Scope::#scope, content: Content::#content, kind: #kind, object_kind: #object_kind,
        flags: #flags, align: #align, entry: #entry, link: #link, info: #info, symbol: #symbol,
        bytes: &[#(#bytes),*], order: [#(#order),*],
    } }
}

fn attribute(row: &AttributeRow) -> TokenStream {
    let (id, name, format, kernel_only) = (row.id, &row.name, row.format, row.of == "kernel");
    let (place, value) = (format_ident!("{}", camel(&row.place)), format_ident!("{}", camel(&row.value)));
    let (rel, rela, driver) = (row.rel, row.rela, format_ident!("{}", camel(&row.driver)));
    let (payload, when, differ) = (&row.payload, &row.when, &row.differ);
    quote! { AttributeRow {
        id: #id, name: #name, format: #format, place: Place::#place, value: AttributeValue::#value,
        kernel_only: #kernel_only, order: [#rel, #rela], payload: #payload, when: #when,
        driver: DriverNeed::#driver, differ: #differ,
    } }
}

fn option(value: Option<u32>) -> TokenStream {
    value.map_or_else(|| quote!(None), |v| quote!(Some(#v)))
}

fn compat(elf: &Elf) -> TokenStream {
    let count = elf.compat.len();
    let rows = elf.compat.iter().map(|row| {
        let (id, name, format, differ) = (row.id, &row.name, row.format, &row.differ);
        let value = match row.value.as_str() {
            "accelerator" => quote!(CompatValue::Accelerator),
            "class" => quote!(CompatValue::Class),
            "maps" => quote!(CompatValue::Maps),
            "integers" => quote!(CompatValue::Integers(5, 6)),
            text => {
                let bytes = hex(text).unwrap_or_default();
                quote!(CompatValue::Bytes(&[#(#bytes),*]))
            }
        };
        let toolkit = option(row.toolkit);
        quote! { CompatRow { id: #id, name: #name, format: #format, value: #value, toolkit: #toolkit, differ: #differ } }
    });
    quote! {
        /// Attributes of `.nv.compat` in file order.
        pub static COMPAT: [CompatRow; #count] = [#(#rows),*];
    }
}

fn reserved(elf: &Elf) -> TokenStream {
    let count = elf.reserved.len();
    let rows = elf.reserved.iter().map(|row| {
        let (name, sms, info, other) = (&row.name, &row.sms, row.info, row.other);
        let (when_shared, when_object) = (row.when == "shared", row.when.starts_with("object"));
        let (when_tensor, when_linked) = (row.when.ends_with("tensor"), row.when == "linked");
        let (section, value, size) = (&row.section, row.value, row.size);
        quote! { ReservedRow {
            name: #name, sms: &[#(#sms),*], when_shared: #when_shared, when_object: #when_object, when_tensor: #when_tensor,
            when_linked: #when_linked, info: #info, other: #other, section: #section, value: #value, size: #size,
        } }
    });
    quote! {
        /// Symbols of the reserved shared memory.
        pub static RESERVED: [ReservedRow; #count] = [#(#rows),*];
    }
}

fn relocations(elf: &Elf) -> TokenStream {
    let roles: Vec<_> = RELOCATION_ROLES.iter().map(|n| (camel(n), n.to_string())).collect();
    let role = plain_enum("RelocRole", "What the writer uses a relocation for.", &roles);
    let count = elf.relocations.len();
    let rows = elf.relocations.iter().map(|row| {
        let (number, name, shift, applies) = (row.number, &row.name, row.shift, row.applies == "yes");
        let list = |text: &str| {
            let roles: Vec<_> = text.split_whitespace().map(|r| format_ident!("{}", camel(r))).collect();
            quote!(&[#(RelocRole::#roles),*])
        };
        let (rel, rela) = (list(&row.rel), list(&row.rela));
        let bits = bit_ranges(&row.bits).unwrap_or_default().into_iter().map(|(low, high)| quote!((#low, #high)));
        quote! { RelocRow {
            number: #number, name: #name, roles: [#rel, #rela], bits: &[#(#bits),*], shift: #shift, applies: #applies,
        } }
    });
    quote! {
        #role
        /// All relocations.
        pub static RELOCATIONS: [RelocRow; #count] = [#(#rows),*];
    }
}
