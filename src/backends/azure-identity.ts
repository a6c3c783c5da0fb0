import { ClientCertificateCredential, ClientSecretCredential, DefaultAzureCredential, WorkloadIdentityCredential, type TokenCredential } from "@azure/identity";

/**
 * The identity to sign in with, from the environment of one backend and in the order of Azure's own libraries: a service principal, workload identity, then what
 * the machine has (managed identity, `az login`).
 */
export function openIdentity(env: Readonly<Record<string, string | undefined>>): TokenCredential {
  const tenantId = env["AZURE_TENANT_ID"];
  const clientId = env["AZURE_CLIENT_ID"];
  const authority = env["AZURE_AUTHORITY_HOST"];
  // An authority of one's own is not in Microsoft's list of them, which would be asked for over the internet.
  const options =
    authority === undefined
      ? {}
      : { authorityHost: authority, disableInstanceDiscovery: !/\.(microsoftonline\.(com|us)|chinacloudapi\.cn)\/?$/.test(authority) };
  if (tenantId !== undefined && clientId !== undefined) {
    const secret = env["AZURE_CLIENT_SECRET"];
    if (secret !== undefined) return new ClientSecretCredential(tenantId, clientId, secret, options);
    const certificate = env["AZURE_CLIENT_CERTIFICATE_PATH"];
    if (certificate !== undefined) return new ClientCertificateCredential(tenantId, clientId, certificate, options);
    const tokenFile = env["AZURE_FEDERATED_TOKEN_FILE"];
    if (tokenFile !== undefined) return new WorkloadIdentityCredential({ tenantId, clientId, tokenFilePath: tokenFile, ...options });
  }
  return new DefaultAzureCredential({ ...options, ...(clientId === undefined ? {} : { managedIdentityClientId: clientId }) });
}
