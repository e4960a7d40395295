/** The editor: CodeMirror with what an API server says at the lines it says it of. */

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";

export interface Remark {
  line: number;
  severity: "error" | "warning" | "info";
  text: string;
}

const nonce = document.querySelector<HTMLMetaElement>('meta[name="nonce"]')?.content ?? "";

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--key)" },
  { tag: [tags.string, tags.content], color: "var(--text)" },
  { tag: tags.comment, color: "var(--dim)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--accent)" },
]);

/** A text that the editor begins with. Another one takes the place of whatever was typed; what is typed does not come back as one. */
export interface Start {
  text: string;
}

export function Editor(props: { start: Start; label: string; remarks: Remark[]; onText: (text: string) => void; onRun?: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const made = new EditorView({
      parent: box.current!,
      state: EditorState.create({
        doc: props.start.text,
        extensions: [
          EditorView.cspNonce.of(nonce),
          lineNumbers(),
          history(),
          indentOnInput(),
          highlightActiveLine(),
          yaml(),
          syntaxHighlighting(colours),
          lintGutter(),
          // Tab leaves the editor, as everywhere on a page; spaces indent.
          keymap.of([
            { key: "Mod-Enter", run: () => (latest.current.onRun?.(), true) },
            ...defaultKeymap,
            ...historyKeymap,
          ]),
          EditorView.contentAttributes.of({ "aria-label": props.label, role: "textbox", "aria-multiline": "true" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onText(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, []);
  useEffect(() => {
    const editor = view.current!;
    if (editor.state.doc.toString() !== props.start.text)
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.start.text } });
  }, [props.start]);
  useEffect(() => {
    const editor = view.current!;
    const doc = editor.state.doc;
    const shown: Diagnostic[] = props.remarks.map((remark) => {
      const line = doc.line(Math.max(1, Math.min(doc.lines, remark.line)));
      return { from: line.from, to: line.to, severity: remark.severity, message: remark.text };
    });
    editor.dispatch(setDiagnostics(editor.state, shown));
  }, [props.remarks]);
  return (
    <div>
      <div ref={box} class="editor" />
      {props.remarks.length > 0 && (
        <ul class="remarks" aria-label="What the server says" role="alert">
          {props.remarks.map((remark, index) => (
            <li key={index} class={remark.severity} data-line={remark.line}>
              <button
                type="button"
                onClick={() => {
                  const editor = view.current!;
                  const line = editor.state.doc.line(Math.max(1, Math.min(editor.state.doc.lines, remark.line)));
                  editor.dispatch({ selection: { anchor: line.from }, scrollIntoView: true });
                  editor.focus();
                }}
              >
                line {remark.line}
              </button>{" "}
              {remark.text}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
