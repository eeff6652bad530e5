// What the pages ask of the theme: they have wide tables and code, in lines of a hundred columns.
// Each selector has a class more than the theme's own, and so weighs more.
export const style = `
:root { --vp-layout-max-width: min(100vw, 1600px) }
.VPContent .VPDoc.has-sidebar.has-aside .content-container { max-width: none }
.VPDoc .vp-doc > div > :is(p, ul, ol) { max-width: 720px }
.VPDoc .vp-doc :is(td, th) { padding: 6px 8px; font-size: 13px; line-height: 20px }
.VPDoc .vp-doc td code { padding: 1px 3px }
.VPDoc .vp-doc div[class*='language-'] code { padding: 0 16px; font-size: 13px }
.VPDoc .vp-doc :is(.language-sh, .language-json, .language-log) code { white-space: pre-wrap; overflow-wrap: anywhere }
`;
